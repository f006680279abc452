// Sweep and purge, once: what each looks after, what it leaves alone, and what it puts on record.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { outbox, purgeOnce, sweepOnce } from '../src/index.ts'
import { deliverOnce, enqueue, keysOf, putClinic } from './support/clinic.ts'
import { testDatabase } from './support/database.ts'
import { startPeer, status } from './support/peer.ts'

const db = await testDatabase()
const peer = await startPeer()
await putClinic(db, peer.url, { retentionDays: 7 })
const purge = () => purgeOnce(db, { tombstoneDays: 30 })
const count = async (table: string) =>
  (await db.query<{ n: number }>(`select count(*)::int as n from outbox.${table}`))[0]?.n

test('a sweep makes a straggler due: parked behind a head that has ended', async () => {
  await enqueue(db, ['head', 'behind-1', 'behind-2'], { orderingKey: 'patient-7' })
  // What a race leaves behind: the head is gone and nobody saw the one behind it.
  await db.query(
    `with gone as (delete from outbox.delivery where key = 'head' returning id)
     delete from outbox.queue where delivery_id = (select id from gone)`,
  )
  assert.deepEqual(await sweepOnce(db), { promoted: 1, forgotten: 0, overdueLanes: 0 })
  assert.deepEqual(await db.query(`select key, state from outbox.deliveries where key like 'behind-%' order by key`), [
    { key: 'behind-1', state: 'waiting' },
    { key: 'behind-2', state: 'parked' },
  ])
  assert.deepEqual(await sweepOnce(db), { promoted: 0, forgotten: 0, overdueLanes: 0 })
  await deliverOnce(db)
  assert.equal((await deliverOnce(db)).delivered, 1, 'and the end of each makes the next one due')
})

test('a sweep counts lanes that nobody polls, and forgets pollers that have been dead for a day', async () => {
  await enqueue(db, keysOf('overdue', 30))
  await db.query(`update outbox.queue set next_attempt_at = next_attempt_at - interval '2 minutes'`)
  const [lanes] = await db.query<{ n: number }>('select count(distinct lane)::int as n from outbox.queue')
  await db.query(
    `insert into outbox.poller (name, beat_at, heartbeat_ms, version)
     values ('dead', clock_timestamp() - interval '25 hours', 5000, '0'), ('yesterday', clock_timestamp() - interval '23 hours', 5000, '0')`,
  )
  assert.deepEqual(await sweepOnce(db), { promoted: 0, forgotten: 1, overdueLanes: lanes?.n })
  assert.deepEqual(await db.query('select name from outbox.poller'), [{ name: 'yesterday' }])
  while ((await deliverOnce(db)).claimed > 0);
})

// cases C80, C82
test('a purge cannot touch what is waiting, leased, parked or blocked, however old it is', async () => {
  await enqueue(db, ['waiting', 'leased'])
  await enqueue(db, ['blocked', 'parked'], { orderingKey: 'patient-8' })
  const answers: Record<string, ReturnType<typeof status>> = {
    waiting: status(503),
    leased: status(500),
    blocked: status(422),
  }
  peer.answer((response, request, socket) => (answers[request.key] ?? status(200))(response, request, socket))
  await deliverOnce(db)
  await db.query(
    `update outbox.queue set token = gen_random_uuid(), leased_at = clock_timestamp(), leased_by = 'p'
     where delivery_id = (select id from outbox.delivery where key = 'leased')`,
  )
  await db.query(`update outbox.delivery set discovered_at = discovered_at - interval '10 years', retention_days = 0`)
  await db.query(`update outbox.receipt set delete_after = ended_at`)
  await purge()
  assert.equal(await count('receipt'), 0)
  assert.deepEqual(await db.query('select key, state from outbox.deliveries order by key'), [
    { key: 'blocked', state: 'blocked' },
    { key: 'leased', state: 'leased' },
    { key: 'parked', state: 'parked' },
    { key: 'waiting', state: 'waiting' },
  ])
  peer.answer(status(200))
})

// case C81
test('retention counts from the end, and the deletion is on record', async () => {
  await enqueue(db, ['slow'])
  peer.next(status(503))
  await deliverOnce(db)
  await db.query(`update outbox.delivery set discovered_at = discovered_at - interval '20 days' where key = 'slow'`)
  await db.age('slow', '20 days')
  await deliverOnce(db)
  const [days] = await db.query<{ n: number }>(
    `select extract(epoch from delete_after - clock_timestamp())::float8 / 86400 as n from outbox.deliveries where key = 'slow'`,
  )
  assert.ok(Math.abs((days?.n ?? 0) - 7) < 0.01, `kept for ${days?.n} more days`)
  assert.equal((await purge()).deliveries, 0)
  await db.age('slow', '8 days')
  assert.deepEqual(await purge(), { deliveries: 1, attempts: 2, batches: 1, tombstonesExpired: 0 })
  assert.deepEqual(
    await db.query(
      `select deliveries, attempts, tombstones, batches from outbox.purge_run order by started_at desc limit 1`,
    ),
    [{ deliveries: '1', attempts: '2', tombstones: '1', batches: 1 }],
  )
})

test('a purged key still deduplicates until its tombstone has expired', async () => {
  const again = () =>
    outbox.enqueueStandalone(db.sql, {
      key: 'slow',
      endpoint: 'clinic',
      type: 'eligibility.changed',
      payload: { key: 'slow' },
    })
  assert.deepEqual(await again(), { inserted: false, id: null, purged: true })
  await db.query(`update outbox.tombstone set delete_after = delete_after - interval '31 days'`)
  const { tombstonesExpired } = await purge()
  assert.ok(tombstonesExpired >= 1)
  assert.equal((await again()).inserted, true)
})

test('a purge run is bounded: what is left goes with the next one', async () => {
  await db.query(
    `with ended as (
       insert into outbox.delivery (key, endpoint_id, lane, type, payload, payload_sha256, payload_bytes, discovered_by, scheduled_at)
       select 'bulk-' || i, 1, 1024, 't', '{}', sha256('{}'), 2, 'app', clock_timestamp() from generate_series(1, 10200) i
       returning id)
     insert into outbox.receipt (delivery_id, ended_at, delete_after, attempts, ending, certainty)
     select id, clock_timestamp() - interval '2 days', clock_timestamp() - interval '1 day', 1, 'delivered', 'delivered' from ended`,
  )
  const left = () => count(`delivery where key like 'bulk-%'`)
  assert.equal((await purge()).batches, 50)
  assert.equal(await left(), 200)
  assert.equal((await purge()).deliveries, 200)
  assert.equal(await left(), 0)
})

test('several purges and sweeps at once do the work once', async () => {
  await enqueue(db, keysOf('many', 40))
  while ((await deliverOnce(db)).claimed > 0);
  await db.query('update outbox.receipt set delete_after = ended_at')
  const ended = await count('receipt')
  const runs = await Promise.all([purge(), purge(), purge(), sweepOnce(db), sweepOnce(db)])
  const purged = runs.reduce((n, run) => n + ('deliveries' in run ? run.deliveries : 0), 0)
  assert.equal(purged, ended)
  assert.equal(await count('receipt'), 0)
})

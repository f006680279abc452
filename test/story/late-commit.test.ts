import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { Claiming } from '../../src/claiming.ts'
import { Events } from '../../src/events.ts'
import { purgeOnce } from '../../src/maintenance.ts'
import { completeOptions, POLLER_OPTIONS } from '../../src/options.ts'
import { resolveSecret } from '../../src/secrets.ts'
import { Settler } from '../../src/settler.ts'
import { enqueue as enqueueRow } from '../../src/sql/enqueue.ts'
import type { Executor, Value } from '../../src/sql/executor.ts'
import { deliverOnce, enqueue, putClinic } from '../support/clinic.ts'
import { testDatabase } from '../support/database.ts'
import { message } from '../support/ledger.ts'
import { startPeer } from '../support/peer.ts'
import { begin } from '../support/session.ts'
import { until } from '../support/until.ts'

const FULL_PASS_MS = 5_000

/** Enqueue in a transaction that stays open; it has been open for so long. */
async function openSince(db: Awaited<ReturnType<typeof testDatabase>>, key: string, interval: string) {
  const session = await begin(db)
  const { id } = await enqueueRow(session, message(key))
  await session.run(
    'update outbox.queue set next_attempt_at = next_attempt_at - $2::text::interval where delivery_id = $1::text::bigint',
    [id, interval],
  )
  await session.run(
    `update outbox.delivery set discovered_at = discovered_at - $2::text::interval, scheduled_at = scheduled_at - $2::text::interval
     where id = $1::text::bigint`,
    [id, interval],
  )
  return session
}

// case C23
test('a row whose transaction was open for a minute goes out within one full pass, though the floor is above it', async () => {
  const [db, peer] = [await testDatabase(), await startPeer()]
  await putClinic(db, peer.url, { partitions: 1 })
  // A lane that always has something to come keeps its floor.
  await enqueue(db, ['much-later'], { delayMs: 3_600_000 })
  const open = await openSince(db, 'early', '60 seconds')
  // What the poller asks the database, as it is sent: parameter 8 of a claim is the floors of its lanes.
  const floors: { floor: string; at: number }[] = []
  const asking: Executor = {
    run: (text: string, values: readonly Value[]) => {
      if (text.includes('u(endpoint_id, lane, n, floor, ord)'))
        floors.push({ floor: String(values[7]), at: performance.now() })
      return db.run(text, values)
    },
  }
  const [events, stopping] = [new Events(), new AbortController()]
  const settler = new Settler({ db, name: 'floors', events, signal: stopping.signal })
  const options = completeOptions(POLLER_OPTIONS, { databaseUrl: db.url, pollIntervalMs: 20 })
  const claiming = new Claiming({
    ...{ name: 'floors', options, resolve: resolveSecret, load: null, db: asking, settler, events },
    stopping: stopping.signal,
    read: (_, work) => work(asking),
  })
  after(() => claiming.close())
  await enqueue(db, ['late'])
  await until('it is delivered', async () => {
    await claiming.pollOnce()
    return (await db.query('select 1 from outbox.receipt')).length === 1
  })
  const [due] = await db.query<{ ms: number }>(
    `select extract(epoch from now() - interval '50 seconds')::float8 * 1000 as ms`,
  )
  await open.commit()
  const committed = performance.now()
  floors.length = 0
  await until('the other one is sent', async () => {
    await claiming.pollOnce()
    return peer.received.length === 2
  })
  const tookMs = performance.now() - committed
  await settler.flush()
  assert.deepEqual(
    peer.received.map(({ key }) => key),
    ['late', 'early'],
  )
  const full = floors.findIndex(({ floor }) => floor === '{NULL}')
  const passing = floors.slice(0, full)
  assert.ok(passing.length > 0, 'claims before the one that looked from the beginning passed it')
  for (const { floor } of passing) assert.ok(Number(floor.slice(1, -1)) > (due?.ms ?? 0), `floor ${floor}`)
  assert.ok(tookMs < FULL_PASS_MS + 3_000, `within one full pass: ${tookMs} ms`)
})

// case C83
test('a transaction that was open for longer than the retention commits: its row is delivered, not purged unseen', async () => {
  const [db, peer] = [await testDatabase(), await startPeer()]
  await putClinic(db, peer.url, { retentionDays: 1 })
  const open = await openSince(db, 'long-open', '60 days')
  /** A purge that does find something: another delivery whose time has come. */
  const purge = async (key: string) => {
    await enqueue(db, [key])
    assert.ok((await deliverOnce(db)).delivered >= 1)
    await db.age(key, '25 hours')
    assert.equal((await purgeOnce(db, { tombstoneDays: 1 })).deliveries, 1)
  }
  await purge('old-1')
  await open.commit()
  assert.equal((await purgeOnce(db, { tombstoneDays: 1 })).deliveries, 0, 'committed, waiting, and let be')
  await purge('old-2')
  assert.equal((await purgeOnce(db, { tombstoneDays: 1 })).deliveries, 0, 'delivered, and kept for its time')
  assert.deepEqual(
    await db.query(
      `select key, state, attempts, date_trunc('day', delete_after - ended_at)::text as kept,
              delete_after > clock_timestamp() + interval '23 hours' as from_its_end from outbox.deliveries`,
    ),
    [{ key: 'long-open', state: 'delivered', attempts: 1, kept: '1 day', from_its_end: true }],
  )
  assert.deepEqual(peer.received.map(({ key }) => key).sort(), ['long-open', 'old-1', 'old-2'])
})

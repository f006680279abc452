import assert from 'node:assert/strict'
import { beforeEach, test } from 'node:test'
import { settle } from '../../src/sql/settle.ts'
import { testDatabase } from '../support/database.ts'
import { add, addEndpoint, expire, GONE, lease, RETRY, result, TIMEOUT } from '../support/ledger.ts'

const db = await testDatabase()
const endpoint = await addEndpoint(db, { keyWindowMs: 259_200_000 })

beforeEach(() => db.query('truncate outbox.delivery, outbox.queue, outbox.attempt, outbox.receipt, outbox.poller'))

const next = async (key: string) =>
  (await lease(db, endpoint)).find((claim) => claim.key === key) ?? assert.fail(`${key} was not due`)
const settled = async (key: string, more: Parameters<typeof result>[1] = {}) =>
  settle(db, [result(await next(key), more)], 'p-1')

async function oneOfEach(): Promise<void> {
  await add(db, 'delivered')
  await settled('delivered')
  await add(db, 'dead')
  await settled('dead', GONE)
  await add(db, 'doubtful')
  await settled('doubtful', { ...TIMEOUT, delayMs: 0 })
  await settled('doubtful', GONE)
  await add(db, 'cancelled')
  await settled('cancelled', { ...TIMEOUT, delayMs: 0 })
  await db.query(
    `with q as (delete from outbox.queue where delivery_id = (select id from outbox.delivery where key = 'cancelled') returning delivery_id)
     insert into outbox.receipt (delivery_id, ended_at, delete_after, attempts, ending, certainty, reason)
     select delivery_id, clock_timestamp(), clock_timestamp(), 1, 'cancelled', 'unknown', 'by ann' from q`,
  )
  await add(db, 'blocked', { orderingKey: 'K' })
  await add(db, 'parked', { orderingKey: 'K' })
  await settled('blocked', { ...GONE, verdict: 'block' })
  await add(db, 'retried')
  await settled('retried', TIMEOUT)
  await add(db, 'refused')
  await settled('refused', RETRY)
  await add(db, 'run-out')
  await add(db, 'in-flight')
  await lease(db, endpoint, { limit: 10 })
  await expire(db, 'run-out')
  await add(db, 'waiting')
}

const keys = async (from: string) =>
  (await db.query<{ key: string }>(`select key from outbox.${from} order by key`)).map(({ key }) => key)

test('every delivery is in one of open and ended, with the very columns of deliveries', async () => {
  await oneOfEach()
  // In one statement, so that "due for" is counted from one moment.
  const [differences] = await db.query(
    `select (select count(*) from (select * from outbox.open union all select * from outbox.ended) x)::int as n,
            (select count(*) from (select to_jsonb(d) from outbox.deliveries d except
              (select to_jsonb(o) from outbox.open o union all select to_jsonb(e) from outbox.ended e)) x)::int as missing,
            (select json_agg(key order by key) from outbox.ended) as ended`,
  )
  assert.deepEqual(differences, { n: 11, missing: 0, ended: ['cancelled', 'dead', 'delivered', 'doubtful'] })
})

test('unknown has what may have been applied, open or ended, and no first attempt that is in flight', async () => {
  await oneOfEach()
  await add(db, 'lost')
  await next('lost')
  await expire(db, 'lost')
  assert.deepEqual(await keys('unknown'), ['cancelled', 'doubtful', 'lost', 'retried', 'run-out'])
  assert.ok((await keys(`open where certainty = 'unknown' and state = 'leased'`)).includes('in-flight'))
  const odd = await db.query(`select key from outbox.unknown where certainty <> 'unknown'`)
  assert.deepEqual(odd, [])
})

test('review has what a person must look at, and says which it is', async () => {
  await oneOfEach()
  await db.age('retried', '4 days')
  await addEndpoint(db, { name: 'moved' })
  await db.query(`update outbox.endpoint set unreviewed = 'host a to b' where name = 'moved'`)
  const rows = await db.query(
    `select what, key, endpoint, state, reason, certainty, attempts, last_status, since <= clock_timestamp() as past from outbox.review order by what, key`,
  )
  const clinic = { endpoint: 'clinic', past: true }
  const gone = { ...clinic, reason: 'gone', last_status: 410 }
  assert.deepEqual(rows, [
    { ...gone, what: 'blocked', key: 'blocked', state: 'blocked', certainty: 'rejected', attempts: 1 },
    { ...gone, what: 'dead', key: 'dead', state: 'dead', certainty: 'rejected', attempts: 1 },
    {
      ...{ what: 'endpoint change', key: null, endpoint: 'moved', state: null, reason: 'host a to b', past: true },
      ...{ certainty: null, attempts: null, last_status: null },
    },
    {
      ...{ ...clinic, what: 'key window passed', key: 'retried', state: 'waiting', reason: null },
      ...{ certainty: 'unknown', attempts: 1, last_status: null },
    },
    {
      ...{ ...clinic, what: 'may have been applied', key: 'cancelled', state: 'cancelled', reason: 'by ann' },
      ...{ certainty: 'unknown', attempts: 1, last_status: null },
    },
    { ...gone, what: 'may have been applied', key: 'doubtful', state: 'dead', certainty: 'unknown', attempts: 2 },
  ])
  await db.query(
    `update outbox.receipt set reason = 'key_window_passed' where reason = 'gone' and certainty = 'unknown'`,
  )
  assert.deepEqual(await db.query(`select key from outbox.review where what = 'key window passed' order by key`), [
    { key: 'doubtful' },
    { key: 'retried' },
  ])
  await db.query(`update outbox.endpoint set removed_at = now() where name = 'moved'`)
  assert.deepEqual(await db.query(`select from outbox.review where what = 'endpoint change'`), [])
})

test('lanes tells of each lane with open work when its first row is due', async () => {
  await addEndpoint(db, { name: 'other' })
  await add(db, 'first')
  await add(db, 'second')
  await db.age('first', '90 seconds')
  await add(db, 'later', { endpoint: 'other', delayMs: '60000' })
  await db.query(
    `update outbox.queue set lane = 2051 where delivery_id = (select id from outbox.delivery where key = 'second')`,
  )
  const rows = () =>
    db.query(
      `select endpoint, lane, priority, partition, first_due > clock_timestamp() as later, extract(epoch from overdue)::int >= 90 as overdue
       from outbox.lanes order by endpoint, lane`,
    )
  const normal = { lane: 1024, priority: 'normal', partition: 0 }
  const clinic = { endpoint: 'clinic', later: false }
  assert.deepEqual(await rows(), [
    { ...normal, ...clinic, overdue: true },
    { ...clinic, lane: 2051, priority: 'bulk', partition: 3, overdue: false },
    { ...normal, endpoint: 'other', later: true, overdue: null },
  ])
  await db.query(`update outbox.queue set next_attempt_at = 'infinity', ordering_key = 'K', lane = 7`)
  const [parked] = await rows()
  assert.deepEqual(parked, { ...clinic, lane: 7, priority: 'urgent', partition: 7, later: null, overdue: null })
})

test('pollers tells who is alive: three missed heartbeats are too many', async () => {
  await db.query(
    `insert into outbox.poller (name, heartbeat_ms, version, beat_at) values
     ('a', 1000, '1', clock_timestamp() - interval '2 seconds'), ('b', 1000, '1', clock_timestamp() - interval '4 seconds'), ('c', 5000, '1', clock_timestamp() - interval '4 seconds')`,
  )
  assert.deepEqual(await db.query('select name, alive from outbox.pollers order by name'), [
    { name: 'a', alive: true },
    { name: 'b', alive: false },
    { name: 'c', alive: true },
  ])
})

test('endpoints says in words what stops one, the lasting before the passing', async () => {
  await addEndpoint(db, { name: 'stopped', secret: 'env:STOPPED', authorization: 'env:TOKEN', allowPrivate: true })
  const until = `'2099-01-02T03:04:05Z'`
  for (const [set, state] of [
    ['version = version', 'open'],
    [`tripped_until = ${until}`, 'tripped until 2099-01-02 03:04:05Z'],
    [`backoff_until = ${until}`, 'backing off until 2099-01-02 03:04:05Z'],
    [`paused_at = now(), paused_reason = 'audit'`, 'paused: audit'],
    [`unreviewed = 'region eu to us'`, 'waits for review: region eu to us'],
    ['removed_at = now()', 'removed'],
    [
      `removed_at = null, unreviewed = null, paused_at = null, paused_reason = null, backoff_until = now(), tripped_until = now()`,
      'tripped, one delivery at a time probes it',
    ],
    ['tripped_until = null', 'open'],
  ] as const) {
    await db.query(`update outbox.endpoint set ${set} where name = 'stopped'`)
    const rows = await db.query(
      `select state, secret, "authorization", allow_private, allow_insecure from outbox.endpoints where endpoint = 'stopped'`,
    )
    assert.deepEqual(rows, [
      { state, secret: 'env:STOPPED', authorization: 'env:TOKEN', allow_private: true, allow_insecure: false },
    ])
  }
})

test('purges, operations, reconciliations and tombstones show the rows of their tables whole', async () => {
  await db.query(
    `insert into outbox.purge_run (id, deliveries, attempts, tombstones, tombstones_expired) values (gen_random_uuid(), 1, 2, 3, 4)`,
  )
  await db.query(`insert into outbox.reconciliation (name, checked) values ('captures', 9)`)
  await db.query(
    `insert into outbox.tombstone (key_sha256, payload_sha256, delivery_id, ended_at, delete_after, attempts, ending, certainty)
     values (sha256('k'), sha256('p'), 1, now(), now(), 2, 'delivered', 'delivered')`,
  )
  for (const [view, table] of [
    ['purges', 'purge_run'],
    ['operations', 'operation'],
    ['reconciliations', 'reconciliation'],
    ['tombstones', 'tombstone'],
  ]) {
    const rows = await db.query(`select to_jsonb(v) as row from outbox.${view} v`)
    assert.ok(rows.length > 0)
    assert.deepEqual(rows, await db.query(`select to_jsonb(t) as row from outbox.${table} t`))
  }
})

test('nobody but the owner may look until it is granted', async () => {
  const open = await db.query(
    `select c.relname from pg_class c where c.relnamespace = 'outbox'::regnamespace and c.relkind in ('r', 'v')
       and exists (select from aclexplode(c.relacl) a where a.grantee = 0)`,
  )
  assert.deepEqual(open, [])
})

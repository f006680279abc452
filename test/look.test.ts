import assert from 'node:assert/strict'
import { test } from 'node:test'
import { drizzle } from 'drizzle-orm/postgres-js'
import postgres from 'postgres'
import { type ListFilter, outbox } from '../src/index.ts'
import { settle } from '../src/sql/settle.ts'
import { testDatabase } from './support/database.ts'
import { add, addEndpoint, expire, GONE, lease, RETRY, result, TIMEOUT } from './support/ledger.ts'

const db = await testDatabase()
const clinic = await addEndpoint(db)
const other = await addEndpoint(db, { name: 'other' })

const end = async (endpoint: { id: number }, more: Parameters<typeof result>[1] = {}) =>
  settle(
    db,
    (await lease(db, endpoint)).map((one) => result(one, more)),
    'p-1',
  )

await add(db, 'delivered', { correlationId: 'c-1' })
await end(clinic)
await add(db, 'dead', { type: 'payment.captured' })
await end(clinic, GONE)
await add(db, 'doubtful')
await end(clinic, { ...TIMEOUT, delayMs: 0 })
await end(clinic, GONE)
await add(db, 'blocked', { endpoint: 'other', orderingKey: 'K' })
await add(db, 'parked', { endpoint: 'other', orderingKey: 'K' })
await end(other, { ...GONE, verdict: 'block' })
await add(db, 'retried')
await end(clinic, RETRY)
await add(db, 'lost')
await lease(db, clinic)
await expire(db, 'lost')
await lease(db, clinic)
await add(db, 'waiting', { delayMs: '60000' })

const keys = async (filter: ListFilter) => (await outbox.list(db.sql, filter)).map(({ key }) => key)

const FILTERS: readonly (readonly [filter: ListFilter, found: readonly string[]])[] = [
  [{}, ['waiting', 'lost', 'retried', 'parked', 'blocked', 'doubtful', 'dead', 'delivered']],
  [{ state: 'open' }, ['waiting', 'lost', 'retried', 'parked', 'blocked']],
  [{ state: 'waiting' }, ['waiting', 'retried']],
  [{ state: 'leased' }, ['lost']],
  [{ state: 'parked' }, ['parked']],
  [{ state: 'blocked' }, ['blocked']],
  [{ state: 'dead' }, ['doubtful', 'dead']],
  [{ state: 'delivered' }, ['delivered']],
  [{ state: 'cancelled' }, []],
  [{ certainty: 'unknown' }, ['lost', 'doubtful']],
  [{ certainty: 'rejected' }, ['blocked', 'dead']],
  [{ certainty: 'not_applied' }, ['retried']],
  [{ certainty: 'not_attempted' }, ['waiting', 'parked']],
  [{ reason: 'gone' }, ['blocked', 'doubtful', 'dead']],
  [{ reason: 'gone', state: 'blocked' }, ['blocked']],
  [{ endpoint: 'other' }, ['parked', 'blocked']],
  [{ endpoint: 'nobody' }, []],
  [{ type: 'payment.captured' }, ['dead']],
  [{ orderingKey: 'K' }, ['parked', 'blocked']],
  [{ correlationId: 'c-1' }, ['delivered']],
  [{ limit: 2 }, ['waiting', 'lost']],
  [{ limit: 2, state: 'dead' }, ['doubtful', 'dead']],
  [{ since: '1h', state: 'dead' }, ['doubtful', 'dead']],
  [{ until: '1h' }, []],
  [{ since: '2020-01-01T00:00Z', until: '2021-01-01 00:00 +02:00' }, []],
]

for (const [filter, found] of FILTERS)
  test(`list ${JSON.stringify(filter)} gives ${found.join(', ') || 'nothing'}`, async () => {
    assert.deepEqual(await keys(filter), found)
  })

test('pages follow each other by the id of the last one', async () => {
  const [first, second] = await outbox.list(db.sql, { limit: 2 })
  assert.ok(first && second)
  assert.deepEqual(await keys({ limit: 2, before: second.id }), ['retried', 'parked'])
  assert.deepEqual(await keys({ before: '1' }), [])
})

const WRONG: readonly (readonly [filter: object, message: RegExp])[] = [
  [{ stat: 'dead' }, /unknown option "stat"; did you mean "state"\?/],
  [{ state: 'ded' }, /state is "ded"; it must be one of open, waiting/],
  [{ limit: 0 }, /limit is 0; it must be from 1 to 1000/],
  [{ before: 'waiting' }, /before is "waiting"; it must be the id of a delivery/],
  [{ since: 'yesterday' }, /since is "yesterday"; it must be so long ago/],
  [{ since: '2h', until: '2026-02-30T00:00Z' }, /until is "2026-02-30T00:00Z"; it must be a time that exists/],
  [{ since: '2026-01-01T00:00Z', until: '2026-02-30T00:00Z' }, /until is "2026-02-30T00:00Z"; it must be a time/],
  [{ since: '2026-02-30T00:00Z' }, /since is "2026-02-30T00:00Z"; it must be a time that exists/],
  [{ until: '2026-01-01T00:00' }, /until is .* a time with its zone/],
  [{ endpoint: 'a\0b' }, /endpoint is .* have no NUL character/],
]

for (const [filter, message] of WRONG)
  test(`list refuses ${JSON.stringify(filter)}`, async () => {
    await assert.rejects(outbox.list(db.sql, filter), { code: 'invalid_option', message })
  })

test('get has the delivery, its attempts in order and what people did to it, and never the payload', async () => {
  await db.query(
    `insert into outbox.operation (who, verb, subject, why) values ('ann', 'ack', 'lost', 'seen'), ('ann', 'endpoint put', 'lost', null)`,
  )
  const story = await outbox.get(db.sql, 'lost')
  assert.ok(story)
  const { delivery, attempts, operations } = story
  assert.deepEqual(
    [delivery.key, delivery.state, delivery.attempts, delivery.certainty],
    ['lost', 'leased', 2, 'unknown'],
  )
  assert.match(delivery.whyNotYet ?? '', /^leased by p-1 for 00:00:\d\d more$/)
  assert.deepEqual(
    attempts.map(({ number, outcome, reason }) => [number, outcome, reason]),
    [[1, 'unknown', 'worker_lost']],
  )
  assert.deepEqual(
    operations.map(({ who, verb, why }) => [who, verb, why]),
    [['ann', 'ack', 'seen']],
  )
  assert.doesNotMatch(JSON.stringify(story), /1842/)
})

test('every handle sees the same: numbers are numbers, instants and ids text', async () => {
  const client = postgres(db.url, { max: 1, onnotice: () => {} })
  try {
    const plain = [await outbox.list(db.sql, { state: 'dead' }), await outbox.get(db.sql, 'doubtful')]
    const orm = drizzle(client)
    for (const handle of [orm, client, db] as const)
      assert.deepEqual([await outbox.list(handle, { state: 'dead' }), await outbox.get(handle, 'doubtful')], plain)
    const { endpoints, dead } = await outbox.status(orm)
    assert.deepEqual([typeof endpoints[0]?.due, dead], ['number', { count: 2, more: false }])
  } finally {
    await client.end({ timeout: 1 })
  }
  const story = await outbox.get(db.sql, 'doubtful')
  assert.match(story?.delivery.endedAt ?? '', /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/)
  assert.deepEqual([typeof story?.delivery.id, typeof story?.attempts[0]?.tookMs], ['string', 'number'])
})

test('get of a key that nothing has is null, whatever the key', async () => {
  for (const key of ['nobody', '', 'a\0b', 'x'.repeat(10_000), '\u{1f600}'])
    assert.equal(await outbox.get(db.sql, key), null)
})

test('status says what is wrong, and nothing when nothing is', async () => {
  const { endpoints, trouble, dead } = await outbox.status(db.sql)
  assert.deepEqual(
    endpoints.map(({ endpoint, leased, scheduled, parked, blocked }) => [endpoint, leased, scheduled, parked, blocked]),
    [
      ['clinic', 1, 2, 0, 0],
      ['other', 0, 0, 1, 1],
    ],
  )
  assert.deepEqual(dead, { count: 2, more: false })
  assert.deepEqual(trouble, [
    'no poller is alive',
    'endpoint other has 1 ordering key blocked by a dead delivery',
    '2 deliveries are dead; 1 may have been applied',
  ])
  const fresh = await testDatabase()
  await addEndpoint(fresh)
  await fresh.query(`insert into outbox.poller (name, heartbeat_ms, version) values ('p-1', 5000, '1')`)
  assert.deepEqual((await outbox.status(fresh.sql)).trouble, [])
  await add(fresh, 'late')
  await fresh.age('late', '3 minutes')
  assert.deepEqual((await outbox.status(fresh.sql)).trouble, [
    'endpoint clinic falls behind: 1 delivery is due, the oldest for 3 min',
  ])
  await fresh.query('update outbox.poller set declines = array(select id from outbox.endpoint)')
  assert.deepEqual((await outbox.status(fresh.sql)).trouble.slice(1), [
    'endpoint clinic has no poller that can send to it: a secret or a payload is missing, see their logs',
  ])
  await fresh.query(`insert into outbox.poller (name, heartbeat_ms, version) values ('p-2', 5000, '1')`)
  assert.equal((await outbox.status(fresh.sql)).trouble.length, 1, 'another one can')
  await fresh.query(`update outbox.endpoint set paused_at = now(), paused_reason = 'a move'`)
  assert.match(
    (await outbox.status(fresh.sql)).trouble.join(),
    /^endpoint clinic is paused.*a move.*, with 1 delivery open$/,
  )
})

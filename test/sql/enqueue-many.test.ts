import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EnqueueRow } from '../../src/sql/enqueue.ts'
import { enqueue } from '../../src/sql/enqueue.ts'
import { enqueueMany } from '../../src/sql/enqueue-many.ts'
import { testDatabase } from '../support/database.ts'
import { addEndpoint, lease, message } from '../support/ledger.ts'
import { begin } from '../support/session.ts'

const db = await testDatabase()
let endpoints = 0

async function clinic(partitions = 1) {
  const endpoint = await addEndpoint(db, { name: `clinic-${++endpoints}`, partitions })
  const of = (key: string, more: Partial<EnqueueRow> = {}) => message(key, { endpoint: endpoint.name, ...more })
  const many = (keys: readonly string[], more: Partial<EnqueueRow> = {}) =>
    enqueueMany(
      db,
      keys.map((key) => of(key, more)),
    )
  return { endpoint, of, many }
}

const EXTREMES: Partial<EnqueueRow>[] = [
  {},
  { payload: ' {"raw":1e2, "b":"\\u0000", "b":9007199254740993} ' },
  { payload: '["a\\"b\\\\c, {NULL}"]', orderingKey: 'NULL', correlationId: 'c,"\\{}' },
  { payload: null, payloadRef: 's3://ü "x"', delayMs: '3600000', retentionDays: '7' },
  { notBefore: '2001-01-01Z', traceparent: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`, orderingKey: 'a,b' },
  { type: 'other.type', orderingKey: 'a,b' },
]

const COLUMNS = `d.endpoint_id, d.type, d.ordering_key, d.payload::text as payload, d.payload_ref, d.payload_sha256, d.payload_bytes,
  d.discovered_by, d.scheduled_at - d.discovered_at as wait, d.correlation_id, d.traceparent, d.retention_days, d.erased_at, d.replay_of,
  q.delivery_id is not null as queued, case when isfinite(q.next_attempt_at) then (q.next_attempt_at - d.scheduled_at)::text else 'parked' end as due,
  q.endpoint_id as at, q.ordering_key as in_order, q.attempts, q.token, q.lost, d.lane - q.lane as apart`

test('many are written as each alone would be, with the bytes as they are', async () => {
  const { of } = await clinic(8)
  const { of: other } = await clinic(8)
  for (const [i, more] of EXTREMES.entries()) await enqueue(db, other(`alone-${i}`, more))
  const answers = await enqueueMany(
    db,
    EXTREMES.map((more, i) => of(`many-${i}`, more)),
  )
  assert.equal(answers.length, EXTREMES.length)
  for (const answer of answers)
    assert.deepEqual(answer, { id: answer.id, inserted: true, conflict: null, purged: false })
  const rows = (prefix: string) =>
    db.query(
      `select ${COLUMNS} from outbox.delivery d join outbox.queue q on q.delivery_id = d.id where d.key like $1 order by d.key`,
      `${prefix}-%`,
    )
  const [alone, many] = [await rows('alone'), await rows('many')]
  assert.equal(many.length, EXTREMES.length)
  const here = (row: object) => ({ ...row, endpoint_id: null, at: null })
  assert.deepEqual(many.map(here), alone.map(here))
  assert.deepEqual(
    many.map((row) => (row as { payload: string }).payload),
    EXTREMES.map(({ payload = '{"patient":1842}' }) => payload),
  )
})

const states = async (endpoint: { id: number }) =>
  db.query<{ key: string; due: string }>(
    `select d.key, case when isfinite(q.next_attempt_at) then 'due' else 'parked' end as due
     from outbox.delivery d left join outbox.queue q on q.delivery_id = d.id where d.endpoint_id = $1 order by d.id`,
    endpoint.id,
  )

test('ids follow the order given, and only the first of an ordering key is due', async () => {
  const { endpoint, of } = await clinic()
  const rows = [
    of('order-z1', { orderingKey: 'Z' }),
    of('order-a1', { orderingKey: 'A' }),
    of('order-z0', { orderingKey: 'Z' }),
    of('order-free'),
    of('order-a0', { orderingKey: 'A' }),
  ]
  await enqueueMany(db, rows)
  assert.deepEqual(await states(endpoint), [
    { key: 'order-z1', due: 'due' },
    { key: 'order-a1', due: 'due' },
    { key: 'order-z0', due: 'parked' },
    { key: 'order-free', due: 'due' },
    { key: 'order-a0', due: 'parked' },
  ])
  assert.deepEqual(
    (await lease(db, endpoint)).map(({ key }) => key),
    ['order-z1', 'order-a1', 'order-free'],
  )
  await enqueueMany(db, [of('order-z2', { orderingKey: 'Z' }), of('order-b0', { orderingKey: 'B' })])
  assert.deepEqual((await states(endpoint)).slice(-2), [
    { key: 'order-z2', due: 'parked' },
    { key: 'order-b0', due: 'due' },
  ])
})

test('one ordering key at two endpoints has two heads', async () => {
  const [a, b] = [await clinic(), await clinic()]
  await enqueueMany(db, [a.of('two-a', { orderingKey: 'K' }), b.of('two-b', { orderingKey: 'K' })])
  assert.deepEqual(
    [await states(a.endpoint), await states(b.endpoint)],
    [[{ key: 'two-a', due: 'due' }], [{ key: 'two-b', due: 'due' }]],
  )
})

test('a key twice in one call is written once; what differs is named, and the follower is the head then', async () => {
  const { endpoint, of } = await clinic()
  const { of: elsewhere } = await clinic()
  const answers = await enqueueMany(db, [
    of('twice'),
    of('twice'),
    of('twice', { payload: '{}' }),
    of('twice', { type: 'other' }),
    elsewhere('twice', { orderingKey: 'K' }),
    of('once', { orderingKey: 'K' }),
  ])
  const id = answers[0]?.id ?? null
  const not = (conflict: string | null) => ({ id, inserted: false, conflict, purged: false })
  assert.deepEqual(answers, [
    { id, inserted: true, conflict: null, purged: false },
    ...[null, 'payload', 'type', 'endpoint'].map(not),
    { id: answers[5]?.id, inserted: true, conflict: null, purged: false },
  ])
  assert.deepEqual(await states(endpoint), [
    { key: 'twice', due: 'due' },
    { key: 'once', due: 'due' },
  ])
})

test('a duplicate does not take the place of the head from the next one of its ordering key', async () => {
  const { endpoint, of } = await clinic()
  await enqueue(db, of('place-done', { orderingKey: 'K' }))
  await db.query(`delete from outbox.queue where endpoint_id = $1`, endpoint.id)
  await enqueueMany(db, [of('place-done', { orderingKey: 'K' }), of('place-next', { orderingKey: 'K' })])
  assert.deepEqual((await states(endpoint)).at(-1), { key: 'place-next', due: 'due' })
})

test('a purged key writes nothing, whether its message comes once or twice', async () => {
  const { endpoint, of } = await clinic()
  await db.query(
    `insert into outbox.tombstone (key_sha256, delivery_id, ended_at, delete_after, attempts, ending, certainty)
     select sha256(convert_to(key, 'UTF8')), 0, now(), now() + wait, 1, 'delivered', 'delivered'
     from (values ('gone', interval '1 day'), ('forgotten', interval '-1 second')) as t (key, wait)`,
  )
  const answers = await enqueueMany(
    db,
    ['gone', 'kept', 'gone', 'forgotten'].map((key) => of(key, { orderingKey: 'K' })),
  )
  const gone = { id: null, inserted: false, conflict: null, purged: true }
  const written = (i: number) => ({ id: answers[i]?.id, inserted: true, conflict: null, purged: false })
  assert.deepEqual(answers, [gone, written(1), gone, written(3)])
  assert.deepEqual(await states(endpoint), [
    { key: 'kept', due: 'due' },
    { key: 'forgotten', due: 'parked' },
  ])
})

test('a reconciliation is named on each of its deliveries', async () => {
  const { endpoint, of } = await clinic()
  await enqueueMany(db, [of('found-1'), of('found-2')], { discoveredBy: 'captured payments' })
  assert.deepEqual(
    await db.query('select distinct discovered_by from outbox.delivery where endpoint_id = $1', endpoint.id),
    [{ discovered_by: 'captured payments' }],
  )
})

// case C41
test('two calls with the same keys in opposite order wait for each other one way only; each key is written once', async () => {
  const { of } = await clinic()
  const [one, two] = [await begin(db), await begin(db)]
  const first = await enqueueMany(one, [of('same-2')])
  const second = enqueueMany(two, [of('same-3'), of('same-2'), of('same-1')])
  await two.untilBlocked()
  // Were the rows written in the order given, `two` would hold same-3 by now.
  const third = await enqueueMany(one, [of('same-3')])
  await one.commit()
  const inserted = [...first, ...third, ...(await second)].map((answer) => answer.inserted)
  assert.deepEqual(inserted, [true, true, false, false, true])
  await two.commit()
})

test('1000 go, 1001 do not, and 16 MiB of payloads are the limit', async () => {
  const { endpoint, many } = await clinic(8)
  const keys = Array.from({ length: 1_001 }, (_, i) => `limit-${i}`)
  await assert.rejects(many(keys), {
    code: '22023',
    message: /^outledger: messages are 1001; the limit is 1000 a call/,
  })
  assert.equal((await many(keys.slice(1))).filter(({ inserted }) => inserted).length, 1_000)
  const big = JSON.stringify(['x'.repeat(262_140)])
  const heavy = (n: number) =>
    many(
      keys.slice(0, n).map((key) => `heavy-${key}`),
      { payload: big },
    )
  await assert.rejects(heavy(65), {
    code: '22023',
    message: /^outledger: messages 1 to 65 have payloads of 17039360 bytes; the limit is 16777216 a call/,
  })
  assert.equal((await heavy(64)).length, 64)
  const [sum] = await db.query(
    `select sum(payload_bytes)::int as bytes from outbox.delivery where endpoint_id = $1 and key like 'heavy-%'`,
    endpoint.id,
  )
  assert.deepEqual(sum, { bytes: 16_777_216 })
})

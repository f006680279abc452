import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { claim } from '../../src/sql/claim.ts'
import { settle } from '../../src/sql/settle.ts'
import { testDatabase } from '../support/database.ts'
import { add, addEndpoint, expire, LANE, lease, RETRY, result } from '../support/ledger.ts'
import { begin } from '../support/session.ts'

const db = await testDatabase()
let endpoints = 0

/** An endpoint of its own for each test, so that tests do not claim each other's rows. */
const clinic = (more: Parameters<typeof addEndpoint>[1] = {}) =>
  addEndpoint(db, { name: `clinic-${++endpoints}`, ...more })

const keys = (rows: readonly { key: string }[]) => rows.map((row) => row.key)

const queueRow = (key: string) =>
  db.query(
    `select q.attempts, q.base, q.lost, q.token, q.leased_by, q.blocked_reason,
            round(extract(epoch from q.next_attempt_at - q.leased_at))::int as lease_s,
            round(extract(epoch from q.leased_at - q.ready_at) / 60)::int as lag_min,
            round(extract(epoch from clock_timestamp() - q.first_attempt_at) / 60)::int as first_min,
            round(extract(epoch from clock_timestamp() - q.maybe_applied_at) / 60)::int as maybe_min
     from outbox.queue q join outbox.delivery d on d.id = q.delivery_id where d.key = $1`,
    key,
  )

test('a claim leases what is due, longest due first, and brings all that the attempt needs', async () => {
  const endpoint = await clinic()
  const traceparent = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`
  const id = await add(db, 'needs', { endpoint: endpoint.name, correlationId: 'corr-1', traceparent })
  await add(db, 'by-reference', { endpoint: endpoint.name, payload: null, payloadRef: 's3://x', orderingKey: 'o' })
  await add(db, 'later', { endpoint: endpoint.name, delayMs: '60000' })
  await db.age('by-reference', '2 minutes')
  const [first, second, ...more] = await lease(db, endpoint, { poller: 'p-7' })
  assert.deepEqual(more, [])
  assert.equal(first?.key, 'by-reference')
  assert.deepEqual([first.payload, first.payload_ref, first.keyed], [null, 's3://x', true])
  assert.ok(first.lag_ms >= 120_000 && first.lag_ms < 180_000, `lag ${first.lag_ms}`)
  const { lag_ms, age_ms, ready_at, token, ...rest } = second ?? assert.fail()
  assert.ok(lag_ms < 60_000)
  const expected = {
    ...{ delivery_id: id, endpoint_id: endpoint.id, endpoint_version: 1, lane: LANE, number: 1, used: 1, lost: 0 },
    ...{ maybe_applied_ms: null, lease_ms: 30_000, keyed: false, key: 'needs', type: 'eligibility.changed' },
    ...{ payload: '{"patient":1842}', payload_ref: null, correlation_id: 'corr-1', traceparent },
  }
  assert.deepEqual(rest, { ...rest, ...expected })
  assert.equal(age_ms, 0)
  assert.match(ready_at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/)
  assert.deepEqual(await queueRow('by-reference'), [
    {
      ...{ attempts: 1, base: 0, lost: 0, token, leased_by: 'p-7', blocked_reason: null },
      ...{ lease_s: 30, lag_min: 2, first_min: 0, maybe_min: null },
    },
  ])
  assert.deepEqual(await lease(db, endpoint), [], 'leased rows are nobody else’s')
})

test('a run-out lease is a due row: the lost attempt goes on record as unknown', async () => {
  const endpoint = await clinic()
  const id = await add(db, 'lost', { endpoint: endpoint.name })
  const [a] = await lease(db, endpoint, { poller: 'p-lost' })
  await expire(db, 'lost')
  const [b] = await lease(db, endpoint)
  assert.deepEqual([b?.number, b?.used, b?.lost], [2, 2, 1])
  assert.ok((b?.maybe_applied_ms ?? 0) >= 600_000, 'counted from the start of the lost lease')
  const attempts = await db.query(
    `select number, outcome, verdict, reason, poller, token, request_sent, http_status,
            abs(extract(epoch from started_at - (select first_attempt_at from outbox.queue where delivery_id = $1))) < 1 as since_lease,
            finished_at > started_at + interval '10 minutes' as until_found, lag_ms >= 0 as lag
     from outbox.attempt where delivery_id = $1`,
    id,
  )
  assert.deepEqual(attempts, [
    {
      ...{ number: 1, outcome: 'unknown', verdict: 'retry', reason: 'worker_lost', poller: 'p-lost', token: a?.token },
      ...{ request_sent: null, http_status: null, since_lease: true, until_found: true, lag: true },
    },
  ])
  await expire(db, 'lost')
  const [c] = await lease(db, endpoint)
  assert.deepEqual([c?.number, c?.lost], [3, 2], 'losses in a row are counted')
  const [row] = await queueRow('lost')
  assert.deepEqual([row?.first_min, row?.maybe_min], [20, 20], 'the earliest of both is kept')
  await settle(db, [result(c ?? assert.fail(), { ...RETRY, delayMs: 0 })], 'p-1')
  const [d] = await lease(db, endpoint)
  assert.deepEqual([d?.number, d?.lost], [4, 0], 'an attempt that ended is no loss')
})

test('limits hold for each lane and for the whole; a lane asked for twice counts once', async () => {
  const [one, two] = [await clinic(), await clinic()]
  for (const { name } of [one, two]) for (let i = 0; i < 5; i++) await add(db, `${name}-limit-${i}`, { endpoint: name })
  const wish = (endpoint: typeof one, limit: number) => ({
    endpointId: endpoint.id,
    lane: LANE,
    limit,
    floor: '-infinity',
  })
  const options = { slackMs: 0, leaseMs: 30_000, timeoutMs: 20_000, poller: 'p-1' }
  const take = async (lanes: ReturnType<typeof wish>[], total: number) => {
    const { claims } = await claim(db, { lanes, total, ...options, token: randomUUID() })
    return [one, two].map(({ id }) => claims.filter((row) => row.endpoint_id === id).length)
  }
  assert.deepEqual(await take([wish(one, 1), wish(two, 2)], 10), [1, 2])
  assert.deepEqual(await take([wish(one, 2), wish(two, 2)], 3), [2, 1])
  assert.deepEqual(await take([wish(one, 1), wish(one, 1)], 10), [1, 0])
  assert.deepEqual(await take([wish(one, 9), wish(two, 9)], 10), [1, 2])
})

test('with nothing due a claim tells the clock of the database all the same', async () => {
  const options = { lanes: [], total: 1, slackMs: 0, leaseMs: 1, timeoutMs: 1, token: randomUUID(), poller: 'p-1' }
  const { now, nowMs, claims } = await claim(db, options)
  assert.deepEqual(claims, [])
  const [row] = await db.query(
    "select $1::timestamptz between clock_timestamp() - interval '1 minute' and clock_timestamp() as now, abs(extract(epoch from clock_timestamp()) * 1000 - $2::text::bigint) < 60000 as ms",
    now,
    String(nowMs),
  )
  assert.deepEqual(row, { now: true, ms: true })
})

test('a floor, less its slack, hides what was due before', async () => {
  const endpoint = await clinic()
  for (const [key, age] of [
    ['old', '1 hour'],
    ['new', '1 second'],
  ] as const) {
    await add(db, `floor-${key}`, { endpoint: endpoint.name })
    await db.age(`floor-${key}`, age)
  }
  const [floor] = await db.query<{ at: string }>(`select (now() - interval '1 minute')::text as at`)
  assert.deepEqual(keys(await lease(db, endpoint, { floor: floor?.at ?? '' })), ['floor-new'])
  assert.deepEqual(keys(await lease(db, endpoint, { floor: floor?.at ?? '', slackMs: 7_200_000 })), ['floor-old'])
})

test('an endpoint that is paused, backing off or tripped gives nothing until it is over', async () => {
  const endpoint = await clinic()
  await add(db, 'stopped', { endpoint: endpoint.name })
  const set = (what: string) => db.query(`update outbox.endpoint set ${what} where id = $1`, endpoint.id)
  for (const stop of [
    `paused_at = now(), paused_reason = 'audit'`,
    `paused_at = null, paused_reason = null, backoff_until = now() + interval '1 minute'`,
    `backoff_until = now() - interval '1 minute', tripped_until = now() + interval '1 minute'`,
  ]) {
    await set(stop)
    assert.deepEqual(await lease(db, endpoint), [], stop)
  }
  await set(`tripped_until = now() - interval '1 minute'`)
  assert.deepEqual(keys(await lease(db, endpoint)), ['stopped'])
})

test('an endpoint with a longer timeout gets a lease that is longer by the difference', async () => {
  const [slow, fast] = [await clinic({ timeoutMs: 45_000 }), await clinic({ timeoutMs: 5_000 })]
  for (const { name } of [slow, fast]) await add(db, `${name}-timeout`, { endpoint: name })
  const [a] = await lease(db, slow)
  const [b] = await lease(db, fast)
  assert.deepEqual([a?.lease_ms, b?.lease_ms], [55_000, 30_000])
})

test('two claims open at once share the rows, wait for nobody, and a rolled-back one leaves no trace', async () => {
  const endpoint = await clinic()
  for (let i = 0; i < 4; i++) await add(db, `shared-${i}`, { endpoint: endpoint.name })
  const [a, b] = [await begin(db), await begin(db)]
  assert.deepEqual(keys(await lease(a, endpoint, { limit: 3 })), ['shared-0', 'shared-1', 'shared-2'])
  assert.deepEqual(keys(await lease(b, endpoint, { limit: 3 })), ['shared-3'])
  await b.commit()
  await a.rollback()
  const again = await lease(db, endpoint)
  assert.deepEqual(keys(again), ['shared-0', 'shared-1', 'shared-2'])
  assert.deepEqual([again[0]?.number, again[0]?.lost], [1, 0])
})

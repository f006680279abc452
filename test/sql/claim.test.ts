import assert from 'node:assert/strict'
import { test } from 'node:test'
import { settle } from '../../src/sql/settle.ts'
import { testDatabase } from '../support/database.ts'
import { add, addEndpoint, expire, LANE, lease, leaseSuspect, RETRY, result } from '../support/ledger.ts'
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
  const { lag_ms, age_ms, lease_ms, token, ...rest } = second ?? assert.fail()
  assert.ok(lag_ms < 60_000)
  const expected = {
    ...{ delivery_id: id, endpoint_id: endpoint.id, endpoint_version: 1, lane: LANE, number: 1, used: 1, lost: 0 },
    ...{ maybe_applied_ms: null, keyed: false, key: 'needs', type: 'eligibility.changed' },
    ...{ payload: '{"patient":1842}', payload_ref: null, pinned: null, correlation_id: 'corr-1', traceparent },
  }
  assert.deepEqual(rest, { ...rest, ...expected })
  assert.ok(Math.abs(age_ms) <= 1)
  assert.ok(lease_ms > 29_900 && lease_ms <= 30_000)
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
  const [c] = await leaseSuspect(db, [id])
  assert.deepEqual([c?.number, c?.lost], [3, 2], 'losses in a row are counted')
  const [row] = await queueRow('lost')
  assert.deepEqual([row?.first_min, row?.maybe_min], [20, 20], 'the earliest of both is kept')
  await settle(db, [result(c ?? assert.fail(), { ...RETRY, delayMs: 0 })], 'p-1')
  const [d] = await lease(db, endpoint)
  assert.deepEqual([d?.number, d?.lost], [4, 0], 'an attempt that ended is no loss')
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

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { settle } from '../../src/sql/settle.ts'
import { testDatabase } from '../support/database.ts'
import { add, addEndpoint, expire, GONE, type Leased, lease, RETRY, result, TIMEOUT } from '../support/ledger.ts'
import { begin } from '../support/session.ts'

const db = await testDatabase()
const endpoint = await addEndpoint(db, { retentionDays: 30 })

/** Enqueue one delivery and claim it. */
async function leased(key: string, more: Parameters<typeof add>[2] = {}): Promise<Leased> {
  await add(db, key, more)
  return again(key)
}

async function again(key: string): Promise<Leased> {
  const row = (await lease(db, endpoint)).find((claim) => claim.key === key)
  return row ?? assert.fail(`${key} was not due`)
}

const attempts = ({ delivery_id }: Leased) =>
  db.query(
    `select number, outcome, verdict, reason, http_status, phase, request_sent, target_host, bytes_out, bytes_in, retry_after_ms,
            replayed, poller, token, round(extract(epoch from finished_at - started_at) * 1000)::int as took_ms,
            round(extract(epoch from clock_timestamp() - finished_at) / 60)::int as ago_min, (lag_ms / 60000)::int as lag_min
     from outbox.attempt where delivery_id = $1 order by number`,
    delivery_id,
  )

const receipt = async ({ delivery_id }: Leased) =>
  (
    await db.query(
      `select ending, certainty, reason, attempts, extract(epoch from delete_after - ended_at)::int / 86400 as days,
              ended_at > clock_timestamp() - interval '1 minute' as just_now
       from outbox.receipt where delivery_id = $1`,
      delivery_id,
    )
  )[0]

const queueRow = async ({ delivery_id }: Leased) =>
  (
    await db.query(
      `select attempts, lost, token, leased_at, leased_by, blocked_reason, next_attempt_at = 'infinity' as parked,
              case when isfinite(next_attempt_at) then round(extract(epoch from next_attempt_at - clock_timestamp()) / 60)::int end as due_min,
              round(extract(epoch from clock_timestamp() - maybe_applied_at) / 60)::int as maybe_min
       from outbox.queue where delivery_id = $1`,
      delivery_id,
    )
  )[0]

test('a 200 ends the delivery: attempt and receipt are there, and the queue row is gone', async () => {
  await add(db, 'ok')
  await db.age('ok', '5 minutes')
  const claim = await again('ok')
  const found = {
    retryAfterMs: 7_000,
    replayed: true,
    reason: 'replayed',
    endReason: 'replayed',
    bytesIn: 9,
    agoMs: 120_000,
  }
  assert.deepEqual(await settle(db, [result(claim, found)], 'p-settles'), [
    { delivery_id: claim.delivery_id, token: claim.token, verdict: 'delivered' },
  ])
  assert.deepEqual(await attempts(claim), [
    {
      ...{ number: 1, outcome: 'delivered', verdict: 'delivered', reason: 'replayed', http_status: 200, phase: 'done' },
      ...{ request_sent: true, target_host: 'clinic.test', bytes_out: 16, bytes_in: 9, retry_after_ms: '7000' },
      ...{ replayed: true, poller: 'p-settles', token: claim.token, took_ms: 40, ago_min: 2, lag_min: 5 },
    },
  ])
  assert.deepEqual(await receipt(claim), {
    ...{ ending: 'delivered', certainty: 'delivered', reason: 'replayed', attempts: 1, days: 30, just_now: true },
  })
  assert.equal(await queueRow(claim), undefined)
})

test('retention comes from the delivery where it has its own, else from its endpoint', async () => {
  const own = await leased('own-retention', { retentionDays: '7' })
  await settle(db, [result(own)], 'p-1')
  assert.equal((await receipt(own))?.days, 7)
  const none = await leased('no-retention', { retentionDays: '0' })
  await settle(db, [result(none, GONE)], 'p-1')
  assert.deepEqual([(await receipt(none))?.days, (await receipt(none))?.ending], [0, 'dead'])
})

test('a retry gives the lease back with its delay and keeps what may have been applied', async () => {
  const claim = await leased('again')
  // Five minutes from the end of the attempt, not from the moment in which it is written.
  await settle(db, [result(claim, { ...TIMEOUT, agoMs: 180_000, tookMs: 0 })], 'p-1')
  const waiting = { token: null, leased_at: null, leased_by: null, blocked_reason: null, parked: false }
  assert.deepEqual(await queueRow(claim), { attempts: 1, lost: 0, ...waiting, due_min: 2, maybe_min: 3 })
  assert.equal(await receipt(claim), undefined)
  await db.age('again', '6 minutes')
  const second = await again('again')
  assert.deepEqual([second.number, Math.round((second.maybe_applied_ms ?? 0) / 60_000)], [2, 9])
  await settle(db, [result(second, RETRY)], 'p-1')
  assert.deepEqual(await queueRow(second), { attempts: 2, lost: 0, ...waiting, due_min: 5, maybe_min: 9 })
})

test('a timeout and then a 410 is dead and may have been applied; a 410 alone is known to be rejected', async () => {
  const claim = await leased('maybe')
  await settle(db, [result(claim, { ...TIMEOUT, delayMs: 0 })], 'p-1')
  await settle(db, [result(await again('maybe'), GONE)], 'p-1')
  const dead = { ending: 'dead', reason: 'gone', days: 30, just_now: true }
  assert.deepEqual(await receipt(claim), { ...dead, certainty: 'unknown', attempts: 2 })
  const plain = await leased('plain')
  await settle(db, [result(plain, GONE)], 'p-1')
  assert.deepEqual(await receipt(plain), { ...dead, certainty: 'rejected', attempts: 1 })
})

test('under the policy block a dead head of an ordering key keeps its place; without a key it is dead', async () => {
  const head = await leased('head', { orderingKey: 'K' })
  const free = await leased('free')
  const block = { ...GONE, verdict: 'block' } as const
  const settled = await settle(db, [result(head, { ...block, ...{ outcome: 'unknown' } }), result(free, block)], 'p-1')
  assert.deepEqual(
    settled.map((row) => row.verdict),
    ['block', 'dead'],
  )
  const blocked = { token: null, leased_at: null, leased_by: null, blocked_reason: 'gone', parked: true, due_min: null }
  assert.deepEqual(await queueRow(head), { attempts: 1, lost: 0, ...blocked, maybe_min: 0 })
  assert.equal(await receipt(head), undefined)
  assert.equal((await attempts(head))[0]?.verdict, 'block')
  assert.equal((await receipt(free))?.ending, 'dead')
})

test('the end of a head makes the next of its ordering key due, never before its own schedule', async () => {
  const head = await leased('first', { orderingKey: 'L' })
  await add(db, 'second', { orderingKey: 'L', delayMs: '600000' })
  await add(db, 'third', { orderingKey: 'L' })
  await settle(db, [result(head)], 'p-1')
  const rows = await db.query(
    `select key, state, round(extract(epoch from next_attempt_at - clock_timestamp()) / 60)::int as due_min
     from outbox.deliveries where ordering_key = 'L' order by id`,
  )
  assert.deepEqual(rows, [
    { key: 'first', state: 'delivered', due_min: null },
    { key: 'second', state: 'waiting', due_min: 10 },
    { key: 'third', state: 'parked', due_min: null },
  ])
})

test('under another token nothing is changed, and one batch may hold both results of a delivery', async () => {
  const stale = await leased('fenced')
  await expire(db, 'fenced')
  const fresh = await again('fenced')
  const before = await queueRow(fresh)
  assert.deepEqual(await settle(db, [result(stale, GONE), result({ ...fresh, token: randomUUID() })], 'p-1'), [])
  assert.deepEqual(await queueRow(fresh), before)
  assert.deepEqual([(await attempts(fresh)).length, await receipt(fresh)], [1, undefined])
  const settled = await settle(db, [result(stale, GONE), result(fresh)], 'p-1')
  assert.deepEqual(
    settled.map((row) => row.token),
    [fresh.token],
  )
  assert.equal((await receipt(fresh))?.ending, 'delivered')
})

test('of two settles of one lease, both open at once, the second finds nothing', async () => {
  const claim = await leased('twice')
  const [a, b] = [await begin(db), await begin(db)]
  assert.equal((await settle(a, [result(claim)], 'p-1')).length, 1)
  const second = Promise.resolve(settle(b, [result(claim, GONE)], 'p-1'))
  await b.untilBlocked()
  await a.commit()
  assert.deepEqual(await second, [])
  await b.commit()
  assert.deepEqual([(await receipt(claim))?.ending, (await attempts(claim)).length], ['delivered', 1])
})

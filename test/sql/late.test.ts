import assert from 'node:assert/strict'
import { test } from 'node:test'
import { late } from '../../src/sql/late.ts'
import { settle } from '../../src/sql/settle.ts'
import { testDatabase } from '../support/database.ts'
import {
  add,
  addEndpoint,
  expire,
  GONE,
  type Leased,
  lease,
  leaseSuspect,
  RETRY,
  result,
  TIMEOUT,
} from '../support/ledger.ts'
import { begin } from '../support/session.ts'

const db = await testDatabase()
const endpoint = await addEndpoint(db)

async function next(key: string, poller?: string): Promise<Leased> {
  const claims = await lease(db, endpoint, poller === undefined ? {} : { poller })
  return claims.find((claim) => claim.key === key) ?? assert.fail(`${key} was not due`)
}

/** A's lease ran out and B has the delivery now. */
async function takenOver(key: string, more: Parameters<typeof add>[2] = {}): Promise<{ a: Leased; b: Leased }> {
  await add(db, key, more)
  const a = await next(key)
  await expire(db, key)
  return { a, b: await next(key, 'p-2') }
}

const attempts = async ({ delivery_id }: Leased) =>
  (
    await db.query(
      `select number, outcome, verdict, reason from outbox.attempt where delivery_id = $1 order by number`,
      delivery_id,
    )
  ).map(Object.values)

const receipt = async ({ delivery_id }: Leased) =>
  (
    await db.query(
      `select ending, certainty, reason, attempts, extract(epoch from delete_after - ended_at)::int / 86400 as days
       from outbox.receipt where delivery_id = $1`,
      delivery_id,
    )
  )[0]

const queueRow = async ({ delivery_id }: Leased) =>
  (await db.query('select * from outbox.queue where delivery_id = $1', delivery_id))[0]

const LATE = { ending: 'delivered', certainty: 'delivered', reason: 'late', days: 30 }

// case C02
test('a stale 200 changes nothing while somebody else holds the delivery, and is kept as evidence', async () => {
  const { a, b } = await takenOver('stale')
  const held = await queueRow(b)
  assert.deepEqual(await settle(db, [result(a)], 'p-1'), [], 'fenced')
  assert.deepEqual(await attempts(a), [[1, 'unknown', 'retry', 'worker_lost']])
  assert.deepEqual(await late(db, [result(a, { tookMs: 45_000, agoMs: 60_000 })]), [
    { delivery_id: a.delivery_id, number: 1, delivered: false },
  ])
  assert.deepEqual(await queueRow(b), held, 'B still holds it')
  const [evidence] = await db.query(
    `select outcome, verdict, reason, http_status, phase, request_sent, target_host, bytes_out, bytes_in, poller, token, number,
            round(extract(epoch from finished_at - started_at))::int as took_s, round(extract(epoch from clock_timestamp() - finished_at) / 60)::int as ago_min
     from outbox.attempt where delivery_id = $1`,
    a.delivery_id,
  )
  assert.deepEqual(evidence, {
    ...{
      outcome: 'delivered',
      verdict: 'delivered',
      reason: null,
      http_status: 200,
      phase: 'done',
      request_sent: true,
    },
    ...{ target_host: 'clinic.test', bytes_out: 16, bytes_in: 2, poller: 'p-1', token: a.token, number: 1 },
    ...{ took_s: 45, ago_min: 1 },
  })
  // B's outcome stands as an observation; what follows from it is that the delivery is delivered.
  assert.equal((await settle(db, [result(b, GONE)], 'p-2'))[0]?.verdict, 'delivered')
  assert.deepEqual(await attempts(b), [
    [1, 'delivered', 'delivered', null],
    [2, 'rejected', 'delivered', 'gone'],
  ])
  assert.deepEqual(await receipt(b), { ...LATE, attempts: 2 })
})

test('a late 200 ends a delivery that waits for its retry, and one whose next lease ran out too', async () => {
  const waiting = await takenOver('waiting')
  await settle(db, [result(waiting.b, RETRY)], 'p-2')
  assert.equal((await late(db, [result(waiting.a)]))[0]?.delivered, true)
  assert.deepEqual(await receipt(waiting.a), { ...LATE, attempts: 2 })
  assert.equal(await queueRow(waiting.a), undefined)

  const lost = await takenOver('lost-again', { retentionDays: '3' })
  await expire(db, 'lost-again')
  assert.equal((await late(db, [result(lost.a)]))[0]?.delivered, true)
  assert.deepEqual(await receipt(lost.a), { ...LATE, attempts: 2, days: 3 })
  assert.deepEqual(await attempts(lost.a), [
    [1, 'delivered', 'delivered', null],
    [2, 'unknown', 'retry', 'worker_lost'],
  ])
})

test('a late 200 corrects a receipt that says dead, and takes a blocked head out of the way', async () => {
  const dead = await takenOver('dead')
  await settle(db, [result(dead.b, GONE)], 'p-2')
  assert.deepEqual(await receipt(dead.b), {
    ...LATE,
    ending: 'dead',
    certainty: 'unknown',
    reason: 'gone',
    attempts: 2,
  })
  assert.equal((await late(db, [result(dead.a)]))[0]?.delivered, true)
  assert.deepEqual(await receipt(dead.b), { ...LATE, reason: 'late, after dead (gone)', attempts: 2 })

  const blocked = await takenOver('blocked', { orderingKey: 'K' })
  await add(db, 'behind', { orderingKey: 'K' })
  await settle(db, [result(blocked.b, { ...GONE, verdict: 'block' })], 'p-2')
  assert.deepEqual(await lease(db, endpoint), [])
  await late(db, [result(blocked.a)])
  assert.deepEqual(await receipt(blocked.a), { ...LATE, attempts: 2 })
  assert.equal((await next('behind')).number, 1, 'its follower is due')
})

test('a late failure only completes the record, and what was observed once is never overwritten', async () => {
  const { a, b } = await takenOver('failure')
  await settle(db, [result(b, RETRY)], 'p-2')
  const before = await queueRow(b)
  assert.equal((await late(db, [result(a, TIMEOUT)]))[0]?.delivered, false)
  assert.deepEqual((await attempts(a))[0], [1, 'unknown', 'retry', 'timeout'])
  await late(db, [result(a, GONE)])
  assert.deepEqual((await attempts(a))[0], [1, 'rejected', 'retry', 'gone'])
  assert.deepEqual(await late(db, [result(a)]), [], 'no longer unknown')
  assert.deepEqual((await attempts(a))[0], [1, 'rejected', 'retry', 'gone'])
  assert.deepEqual(await queueRow(b), { ...before, maybe_applied_at: null }, 'each attempt is known now')
})

const REFUSED = { ...RETRY, reason: 'ECONNREFUSED', httpStatus: null, phase: 'connect', requestSent: false } as const

test('a late result that says nothing was applied takes back the doubt, in the queue and in a receipt', async () => {
  const open = await takenOver('doubt-open')
  assert.notEqual((await queueRow(open.b))?.maybe_applied_at, null)
  await late(db, [result(open.a, REFUSED)])
  assert.equal((await queueRow(open.b))?.maybe_applied_at, null)
  await settle(db, [result(open.b, GONE)], 'p-2')
  assert.equal((await receipt(open.b))?.certainty, 'rejected')

  const ended = await takenOver('doubt-ended')
  await settle(db, [result(ended.b, GONE)], 'p-2')
  assert.equal((await receipt(ended.b))?.certainty, 'unknown')
  await late(db, [result(ended.a, REFUSED)])
  assert.equal((await receipt(ended.b))?.certainty, 'rejected')
})

test('while another attempt may have been applied the doubt stays, counted from that one', async () => {
  const { a, b } = await takenOver('doubt-other')
  await settle(db, [result(b, { ...TIMEOUT, delayMs: 0 })], 'p-2')
  await late(db, [result(a, REFUSED)])
  const [row] = await db.query(
    `select q.maybe_applied_at = a.started_at as from_second from outbox.queue q join outbox.attempt a using (delivery_id)
     where a.delivery_id = $1 and a.number = 2`,
    b.delivery_id,
  )
  assert.equal(row?.from_second, true)
  await settle(db, [result(await next('doubt-other'), GONE)], 'p-1')
  assert.equal((await receipt(b))?.certainty, 'unknown')
})

test('an attempt that is lost while a late result is noted keeps the doubt', async () => {
  const { a, b } = await takenOver('doubt-race')
  await expire(db, 'doubt-race')
  const [c, d] = [await begin(db), await begin(db)]
  const [third] = await leaseSuspect(c, [b.delivery_id])
  assert.equal(third?.number, 3)
  const noted = Promise.resolve(late(d, [result(a, REFUSED)]))
  await d.untilBlocked()
  await c.commit()
  await noted
  await d.commit()
  assert.notEqual((await queueRow(b))?.maybe_applied_at, null)
})

test('a late result names its token: under another one nothing is learned', async () => {
  const { a, b } = await takenOver('token')
  await settle(db, [result(b, RETRY)], 'p-2')
  assert.deepEqual(await late(db, [result({ ...a, token: b.token })]), [])
  assert.deepEqual((await attempts(a))[0], [1, 'unknown', 'retry', 'worker_lost'])
})

test('a late 200 that waits for a claim of the same delivery leaves it to the new lease', async () => {
  const { a } = await takenOver('claimed')
  await expire(db, 'claimed')
  const c = await begin(db)
  const [claimed] = await leaseSuspect(c, [a.delivery_id])
  const d = await begin(db)
  const noted = Promise.resolve(late(d, [result(a)]))
  await d.untilBlocked()
  await c.commit()
  assert.equal((await noted)[0]?.delivered, false)
  await d.commit()
  assert.equal((await queueRow(a))?.token, claimed?.token)
  await settle(db, [result(claimed ?? assert.fail(), RETRY)], 'p-1')
  assert.deepEqual(await receipt(a), { ...LATE, attempts: 3 })
})

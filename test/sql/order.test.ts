import assert from 'node:assert/strict'
import { test } from 'node:test'
import { enqueue } from '../../src/sql/enqueue.ts'
import { settle } from '../../src/sql/settle.ts'
import { testDatabase } from '../support/database.ts'
import { add, addEndpoint, expire, GONE, lease, message, RETRY, result } from '../support/ledger.ts'
import { begin } from '../support/session.ts'

const db = await testDatabase()
let endpoints = 0

async function clinic() {
  const endpoint = await addEndpoint(db, { name: `clinic-${++endpoints}` })
  const take = async (db_: Parameters<typeof lease>[0] = db) => (await lease(db_, endpoint)).map((row) => row.key)
  const of = (key: string, orderingKey: string | null) => message(key, { endpoint: endpoint.name, orderingKey })
  return { endpoint, take, of }
}

const state = async (key: string) =>
  (await db.query<{ state: string }>('select state from outbox.deliveries where key = $1', key))[0]?.state

// case C30
test('while one delivery of an ordering key is leased, nobody gets another of it', async () => {
  const { endpoint, take, of } = await clinic()
  for (let i = 1; i <= 5; i++) await enqueue(db, of(`held-${i}`, 'K'))
  await enqueue(db, of('held-other', 'L'))
  await enqueue(db, of('held-free', null))
  // Due, as if a promotion had gone wrong: the look at the head must hold without the parking.
  await db.query(
    `update outbox.queue set next_attempt_at = now() - interval '1 hour' where endpoint_id = $1 and ordering_key = 'K'`,
    endpoint.id,
  )
  const a = await begin(db)
  assert.deepEqual(await take(a), ['held-1', 'held-other', 'held-free'])
  assert.deepEqual(await take(), [], 'while the lease is not yet committed')
  await a.commit()
  assert.deepEqual(await take(), [], 'while it is')
})

// case C31
test('an earlier delivery that backs off, or is blocked, keeps its followers waiting', async () => {
  const { endpoint, take, of } = await clinic()
  for (const key of ['back-1', 'back-2']) await enqueue(db, of(key, 'K'))
  assert.equal(await state('back-2'), 'parked')
  const [head] = await lease(db, endpoint)
  await settle(db, [result(head ?? assert.fail(), RETRY)], 'p-1')
  await db.query(
    `update outbox.queue set next_attempt_at = now() - interval '1 hour' where endpoint_id = $1 and next_attempt_at = 'infinity'`,
    endpoint.id,
  )
  assert.deepEqual(await take(), [], 'the head is due in five minutes, its follower long ago')
  await db.age('back-1', '6 minutes')
  const [again] = await lease(db, endpoint)
  assert.equal(again?.key, 'back-1')
  await settle(db, [result(again, { ...GONE, verdict: 'block' })], 'p-1')
  assert.equal(await state('back-1'), 'blocked')
  assert.deepEqual(await take(), [])
})

test('a run-out lease of a head keeps its followers waiting too', async () => {
  const { endpoint, take, of } = await clinic()
  for (const key of ['lost-1', 'lost-2']) await enqueue(db, of(key, 'K'))
  assert.deepEqual(await take(), ['lost-1'])
  await expire(db, 'lost-1')
  await db.query(
    `update outbox.queue set next_attempt_at = now() - interval '1 hour' where endpoint_id = $1 and next_attempt_at = 'infinity'`,
    endpoint.id,
  )
  assert.deepEqual(
    (await lease(db, endpoint)).map((row) => [row.key, row.number]),
    [['lost-1', 2]],
  )
})

// case C32
test('the second transaction of an ordering key waits for the first before its id is drawn', async () => {
  const { take, of } = await clinic()
  const [one, two] = [await begin(db), await begin(db)]
  const first = await enqueue(one, of('tx-1', 'K'))
  const pending = enqueue(two, of('tx-2', 'K'))
  await two.untilBlocked()
  // Another ordering key, and no ordering key at all, wait for nobody.
  await add(db, 'tx-other', of('tx-other', 'L'))
  await add(db, 'tx-free', of('tx-free', null))
  await one.commit()
  const second = await pending
  assert.ok(BigInt(second.id ?? 0) > BigInt(first.id ?? 0), 'the order of ids is the order of commits')
  assert.deepEqual(await take(), ['tx-1', 'tx-other', 'tx-free'])
  await two.commit()
  assert.equal(await state('tx-2'), 'parked', 'it saw the first one')
  assert.deepEqual(await take(), [])
})

test('the second transaction of an ordering key is the head when the first rolls back', async () => {
  const { take, of } = await clinic()
  const [one, two] = [await begin(db), await begin(db)]
  await enqueue(one, of('undone-1', 'K'))
  const pending = enqueue(two, of('undone-2', 'K'))
  await two.untilBlocked()
  await one.rollback()
  await pending
  await two.commit()
  assert.deepEqual(await take(), ['undone-2'])
})

test('one ordering key at two endpoints is two keys', async () => {
  const [a, b] = [await clinic(), await clinic()]
  await enqueue(db, a.of('here', 'K'))
  await enqueue(db, b.of('there', 'K'))
  assert.deepEqual([await a.take(), await b.take()], [['here'], ['there']])
})

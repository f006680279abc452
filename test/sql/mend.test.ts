import assert from 'node:assert/strict'
import { test } from 'node:test'
import { late } from '../../src/sql/late.ts'
import { mend } from '../../src/sql/mend.ts'
import { settle } from '../../src/sql/settle.ts'
import { testDatabase } from '../support/database.ts'
import { add, addEndpoint, expire, GONE, type Leased, lease, RETRY, result } from '../support/ledger.ts'
import { begin } from '../support/session.ts'

const db = await testDatabase()
const endpoint = await addEndpoint(db)

/** A's lease ran out and B has the delivery now. */
async function takenOver(key: string, orderingKey: string | null = null): Promise<{ a: Leased; b: Leased }> {
  await add(db, key, { orderingKey })
  const [a] = await lease(db, endpoint)
  await expire(db, key)
  const [b] = await lease(db, endpoint)
  return { a: a ?? assert.fail(), b: b ?? assert.fail() }
}

const receipt = async ({ delivery_id }: Leased) =>
  (await db.query('select ending, certainty, reason from outbox.receipt where delivery_id = $1', delivery_id))[0]

const isOpen = async ({ delivery_id }: Leased) =>
  (await db.query('select from outbox.queue where delivery_id = $1', delivery_id)).length === 1

const FOLLOWS = {
  dead: GONE,
  blocked: { ...GONE, verdict: 'block' },
  waiting: RETRY,
} as const

// case C02
for (const order of ['the late 200', 'the settle'] as const) {
  for (const [follows, failure] of Object.entries(FOLLOWS)) {
    test(`a late 200 and a settle as ${follows}, both open at once: ${order} commits first, and the 200 is not lost`, async () => {
      const key = `${follows}-${order.slice(4, 8)}`
      const { a, b } = await takenOver(key, follows === 'blocked' ? key : null)
      const [one, two] = [await begin(db), await begin(db)]
      await late(one, [result(a)])
      assert.equal((await settle(two, [result(b, failure)], 'p-2')).length, 1, 'neither sees the other')
      for (const session of order === 'the settle' ? [two, one] : [one, two]) await session.commit()
      // What stands here is wrong, and both callers know that it may be.
      assert.notEqual((await receipt(a))?.ending, 'delivered')
      const mended = await mend(db, [a.delivery_id])
      assert.deepEqual(mended, follows === 'dead' ? { absorbed: 0, upgraded: 1 } : { absorbed: 1, upgraded: 0 })
      const reason = follows === 'dead' ? 'late, after dead (gone)' : 'late'
      assert.deepEqual(await receipt(a), { ending: 'delivered', certainty: 'delivered', reason })
      assert.equal(await isOpen(a), false)
      assert.deepEqual(await mend(db, [a.delivery_id]), { absorbed: 0, upgraded: 0 }, 'once is enough')
    })
  }
}

test('mending leaves alone what has no delivered attempt, and what is leased', async () => {
  const dead = await takenOver('really-dead')
  await settle(db, [result(dead.b, GONE)], 'p-2')
  const held = await takenOver('held')
  await late(db, [result(held.a)])
  assert.deepEqual(await mend(db, [dead.a.delivery_id, held.a.delivery_id]), { absorbed: 0, upgraded: 0 })
  assert.deepEqual(await receipt(dead.a), { ending: 'dead', certainty: 'unknown', reason: 'gone' })
  assert.equal(await isOpen(held.a), true)
  await expire(db, 'held')
  assert.deepEqual(await mend(db, [held.a.delivery_id]), { absorbed: 1, upgraded: 0 })
  const attempts = await db.query(
    'select number, outcome, reason from outbox.attempt where delivery_id = $1 order by number',
    held.a.delivery_id,
  )
  assert.deepEqual(attempts, [
    { number: 1, outcome: 'delivered', reason: null },
    { number: 2, outcome: 'unknown', reason: 'worker_lost' },
  ])
})

test('of two mendings at once one does the work', async () => {
  const { a, b } = await takenOver('both')
  await settle(db, [result(b, RETRY)], 'p-2')
  await db.query(
    `update outbox.attempt set outcome = 'delivered', request_sent = true where delivery_id = $1 and number = 1`,
    a.delivery_id,
  )
  const [one, two] = [await begin(db), await begin(db)]
  assert.deepEqual(await mend(one, [a.delivery_id]), { absorbed: 1, upgraded: 0 })
  const second = mend(two, [a.delivery_id])
  await two.untilBlocked()
  await one.commit()
  assert.deepEqual(await second, { absorbed: 0, upgraded: 0 })
  await two.commit()
  assert.deepEqual(await receipt(a), { ending: 'delivered', certainty: 'delivered', reason: 'late' })
})

test('a mended head makes the next of its ordering key due', async () => {
  const { a, b } = await takenOver('mended-head', 'L')
  await add(db, 'follower', { orderingKey: 'L' })
  await settle(db, [result(b, { ...GONE, verdict: 'block' })], 'p-2')
  await db.query(
    `update outbox.attempt set outcome = 'delivered', request_sent = true where delivery_id = $1 and number = 1`,
    a.delivery_id,
  )
  await mend(db, [a.delivery_id])
  assert.deepEqual(
    (await lease(db, endpoint)).map((row) => row.key),
    ['follower'],
  )
})

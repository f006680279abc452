import assert from 'node:assert/strict'
import { test } from 'node:test'
import type postgres from 'postgres'
import { outbox } from '../src/index.ts'
import { testDatabase } from './support/database.ts'
import { addEndpoint } from './support/ledger.ts'
import { begin } from './support/session.ts'

const db = await testDatabase()
await addEndpoint(db)

const event = (key: string, orderingKey: string): outbox.Message => ({
  key,
  endpoint: 'clinic',
  type: 't',
  payload: {},
  orderingKey,
})
const stored = async (start: string) =>
  (await db.query('select from outbox.delivery where starts_with(key, $1)', start)).length

// case C46
test('two enqueueMany of two ordering keys in opposite order do not deadlock', async () => {
  // Each key is held until both calls wait, so that in the order given one would get A, the other B.
  const [holdsA, holdsB] = [await begin(db), await begin(db)]
  await outbox.enqueue(holdsA, event('many-held-a', 'A'))
  await outbox.enqueue(holdsB, event('many-held-b', 'B'))
  const [one, two] = [await begin(db), await begin(db)]
  const first = outbox.enqueueMany(one, [event('many-1', 'A'), event('many-2', 'B')]).finally(() => one.commit())
  await one.untilBlocked()
  const second = outbox.enqueueMany(two, [event('many-3', 'B'), event('many-4', 'A')]).finally(() => two.commit())
  await two.untilBlocked()
  await holdsA.commit()
  await holdsB.commit()
  const written = await Promise.all([first, second])
  assert.deepEqual(
    written.flat().map(({ inserted }) => inserted),
    [true, true, true, true],
  )
  assert.equal(await stored('many-'), 6)
})

// case C46
test('separate calls in opposite order do; the error is 40P01, and to run the transaction again is enough', async () => {
  const retried = async (work: (tx: postgres.TransactionSql) => Promise<unknown>, failures = 0): Promise<number> => {
    try {
      await db.sql.begin(work)
      return failures
    } catch (error) {
      if ((error as { code?: string }).code !== '40P01') throw error
      return retried(work, failures + 1)
    }
  }
  let arrived = 0
  let open = () => {}
  const bothArrived = new Promise<void>((resolve) => {
    open = resolve
  })
  const capture =
    (...[first, second]: [outbox.Message, outbox.Message]) =>
    async (tx: postgres.TransactionSql) => {
      await tx.unsafe(`set local deadlock_timeout = '100ms'`)
      await outbox.enqueue(tx, first)
      if (++arrived === 2) open()
      await bothArrived
      await outbox.enqueue(tx, second)
    }
  const failures = await Promise.all([
    retried(capture(event('one-1', 'A'), event('one-2', 'B'))),
    retried(capture(event('one-3', 'B'), event('one-4', 'A'))),
  ])
  assert.deepEqual(failures.toSorted(), [0, 1], 'one of the two was chosen as the victim, once')
  assert.equal(await stored('one-'), 4)
})

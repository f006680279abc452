// Runs of a reconciliation beside each other and beside the app, at named points.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { defineReconciliation, outbox, reconcileOnce } from '../src/index.ts'
import { testDatabase } from './support/database.ts'
import { announcement, counts, type Payment, payments } from './support/payments.ts'
import { gate } from './support/peer.ts'

const db = await testDatabase()
const { captured, fresh, pay, keysBy } = await payments(db)

/** The client, with a moment of the test's before or after what a run does first and what it does next. */
function paused(points: {
  before?: Record<string, () => Promise<unknown>>
  after?: Record<string, () => Promise<unknown>>
}) {
  const nameOf = (text: string) =>
    text.includes('outledger_position')
      ? 'page'
      : text.includes('with ordinality as k')
        ? 'look'
        : text.includes('enqueue_many')
          ? 'enqueue'
          : ''
  return {
    run: async <T>(text: string, values: readonly (string | null)[]) => {
      await points.before?.[nameOf(text)]?.()
      const rows = await db.run<T>(text, values)
      await points.after?.[nameOf(text)]?.()
      return rows
    },
  }
}

test('two runs at once, both of which have seen the same gaps, enqueue each key once', async () => {
  await fresh()
  await pay(1, 1_500)
  const [seen, mayGo] = [{ n: 0 }, gate()]
  const both = {
    look: async () => {
      if (++seen.n === 2) mayGo.open()
      await mayGo.opened
    },
  }
  const runs = await Promise.all([1, 2].map(() => reconcileOnce(paused({ after: both }), captured)))
  assert.deepEqual(
    runs.map(({ checked }) => checked),
    [1_500, 1_500],
  )
  assert.ok(
    runs.every(({ missing }) => missing >= 1_000),
    'both saw the gaps of the first page',
  )
  assert.equal(
    runs.reduce((sum, run) => sum + run.enqueued, 0),
    1_500,
  )
  assert.equal((await keysBy('captured-payments')).length, 1_500)
})

// The window between the look at the business rows and the look at the deliveries, entered from both sides.
for (const [when, point, seen] of [
  ['just before it reads', 'before', 2],
  ['just after it has read', 'after', 1],
] as const)
  test(`a payment whose transaction commits while a run is on, ${when}, is not taken for forgotten`, async () => {
    await fresh()
    await pay(1)
    await outbox.enqueueStandalone(db, announcement({ id: 1, cents: 100 }))
    const app = async () => {
      await db.sql.begin(async (tx) => {
        await tx`insert into payment values (2, 200)`
        await outbox.enqueue(tx, announcement({ id: 2, cents: 200 }))
      })
    }
    const run = await reconcileOnce(paused({ [point]: { page: app } }), captured)
    assert.deepEqual(counts(run), [seen, 0, 0, 0])
    assert.deepEqual(await keysBy('captured-payments'), [])
  })

test('a run that is on shows how far it has come, which is what is left of one that is killed', async () => {
  await fresh()
  const shown: unknown[] = []
  const slow = defineReconciliation<Payment>({
    name: 'slow',
    async *expected() {
      for (let id = 1; id <= 1_500; id++) {
        if (id === 1_001)
          shown.push(
            ...(await db.query(
              `select checked::int, enqueued::int, finished_at from outbox.reconciliation where name = 'slow'`,
            )),
          )
        yield { id, cents: 100 * id }
      }
    },
    toMessage: announcement,
  })
  assert.deepEqual(counts(await reconcileOnce(db, slow)), [1_500, 1_500, 1_500, 0])
  assert.deepEqual(shown, [{ checked: 1_000, enqueued: 1_000, finished_at: null }])
})

test('an app that enqueues late, between the look and the write, is the one that has written', async () => {
  await fresh()
  await pay(1)
  const late = () => outbox.enqueueStandalone(db, announcement({ id: 1, cents: 100 }))
  assert.deepEqual(counts(await reconcileOnce(paused({ before: { enqueue: late } }), captured)), [1, 1, 0, 0])
  assert.deepEqual(await keysBy('app'), ['capture-1'])
})

test('an app that enqueues something else under the key in that moment is reported as a mismatch', async () => {
  await fresh()
  await pay(1)
  const late = () => outbox.enqueueStandalone(db, announcement({ id: 1, cents: 101 }))
  const run = await reconcileOnce(paused({ before: { enqueue: late } }), captured)
  assert.deepEqual([counts(run), run.mismatches], [[1, 1, 0, 1], [{ key: 'capture-1', what: 'payload' }]])
})

import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { createPoller, defineReconciliation, outbox, putEndpoint, reconcileOnce } from '../../src/index.ts'
import { drain, startReceiver } from '../../src/testing.ts'
import { testDatabase } from '../support/database.ts'

const db = await testDatabase()
await db.query('create table payment (id int primary key, cents int not null, captured_at timestamptz)')
const receiver = await startReceiver()
after(() => receiver.close())
const { resolveSecret } = receiver
await putEndpoint(db.sql, receiver.endpoint('clinic'), { resolve: resolveSecret })

const announcement = (id: number, cents: number) => ({
  ...{ key: `capture-${id}`, endpoint: 'clinic', type: 'payment.captured', payload: { payment: id, cents } },
})
const delivered = async () => {
  const poller = createPoller({ databaseUrl: db.url, resolveSecret })
  return drain(poller, { retries: true }).finally(() => poller.stop())
}

defineReconciliation<{ id: number; cents: number }>({
  name: 'captured-payments',
  expected: `select id, cents from payment where captured_at < now() - interval '5 minutes'`,
  pageBy: 'id',
  toMessage: ({ id, cents }) => announcement(id, cents),
})

test('what the app forgot to enqueue is found by a reconciliation and sent once under its own key', async () => {
  // A path through the app that captures and does not announce; one that does; and a capture that is still under way.
  await db.query(`insert into payment values (1842, 9900, now() - interval '1 hour'), (1844, 700, null)`)
  await db.sql.begin(async (tx) => {
    await tx`insert into payment values (1843, 500, now() - interval '1 hour')`
    await outbox.enqueue(tx, announcement(1843, 500))
  })
  await delivered()
  assert.deepEqual(receiver.effects, ['capture-1843'])

  // The nightly job, started on two hosts by mistake.
  const runs = await Promise.all([1, 2].map(() => reconcileOnce(db.sql, 'captured-payments')))
  assert.deepEqual(
    runs.map(({ checked, mismatched }) => [checked, mismatched]),
    [
      [2, 0],
      [2, 0],
    ],
  )
  assert.equal(
    runs.reduce((sum, { enqueued }) => sum + enqueued, 0),
    1,
  )
  // The receiver takes it, and its answer is lost: the same key comes again.
  receiver.answerOnce('lost')
  await delivered()
  // The forgetful path is mended later, and announces what it had forgotten.
  await db.sql.begin((tx) => outbox.enqueue(tx, announcement(1842, 9900)))
  await reconcileOnce(db.sql, 'captured-payments')
  await delivered()

  assert.deepEqual(receiver.effects, ['capture-1843', 'capture-1842'])
  assert.deepEqual(
    receiver.requests.map(({ key, attempt, payload }) => [key, attempt, payload]),
    [
      ['capture-1843', 1, { payment: 1843, cents: 500 }],
      ['capture-1842', 1, { payment: 1842, cents: 9900 }],
      ['capture-1842', 2, { payment: 1842, cents: 9900 }],
    ],
  )
  assert.deepEqual(await db.query('select key, discovered_by, state, attempts from outbox.deliveries order by key'), [
    { key: 'capture-1842', discovered_by: 'captured-payments', state: 'delivered', attempts: 2 },
    { key: 'capture-1843', discovered_by: 'app', state: 'delivered', attempts: 1 },
  ])
  assert.deepEqual(
    await db.query(
      `select sum(enqueued)::int as enqueued, count(*)::int as runs, count(finished_at)::int as finished, count(error)::int as failed
       from outbox.reconciliation`,
    ),
    [{ enqueued: 1, runs: 3, finished: 3, failed: 0 }],
  )
})

import assert from 'node:assert/strict'
import { beforeEach, test } from 'node:test'
import { discover } from '../../src/sql/discover.ts'
import { settle } from '../../src/sql/settle.ts'
import { testDatabase } from '../support/database.ts'
import { add, addEndpoint, GONE, LANE, lease, result } from '../support/ledger.ts'
import { begin } from '../support/session.ts'

const db = await testDatabase()
const one = await addEndpoint(db, { name: 'one', concurrency: 10 })
const two = await addEndpoint(db, { name: 'two', partitions: 4, concurrency: 9 })

beforeEach(() => db.query('truncate outbox.delivery, outbox.queue'))

const ALL = { afterEndpointId: 0, afterLane: -1, limit: 100 }

/** Minutes until the first row of each lane is due. */
const dueMinutes = async () =>
  (await discover(db, ALL)).map(({ due_in_ms }) => (due_in_ms === null ? null : Math.round(due_in_ms / 60_000) + 0))

test('each lane with open rows stands once, with its endpoint’s limits and the time until its first row is due', async () => {
  assert.deepEqual(await discover(db, ALL), [])
  for (const [key, minutes] of [
    ['a', 5],
    ['b', 10],
  ] as const)
    await add(db, key, { endpoint: 'one', delayMs: String(minutes * 60_000) })
  const [row, ...more] = await discover(db, ALL)
  assert.deepEqual(more, [])
  const { due_in_ms, head, ...limits } = row ?? assert.fail()
  assert.deepEqual(limits, {
    ...{
      endpoint_id: one.id,
      lane: LANE,
      stopped: false,
      half_open: false,
      timeout_ms: null,
      concurrency: 10,
      partitions: 1,
    },
  })
  assert.ok(due_in_ms !== null && due_in_ms > 240_000 && due_in_ms <= 300_000)
  assert.equal((await discover(db, ALL))[0]?.head, head, 'the same head again: nobody took it')
  await db.age('a', '1 second')
  assert.notEqual((await discover(db, ALL))[0]?.head, head)
  await db.age('b', '25 minutes')
  assert.deepEqual(await dueMinutes(), [-15])
})

test('pages follow each other through endpoints and lanes', async () => {
  await add(db, 'a', { endpoint: 'one' })
  for (let i = 0; i < 40; i++) await add(db, `many-${i}`, { endpoint: 'two' })
  const lanes = (rows: Awaited<ReturnType<typeof discover>>) => rows.map((row) => [row.endpoint_id, row.lane])
  const all = lanes(await discover(db, ALL))
  assert.deepEqual(all, [[one.id, LANE], ...[0, 1, 2, 3].map((i) => [two.id, LANE + i])])
  const paged = []
  for (let after = ALL; ; ) {
    const page = lanes(await discover(db, { ...after, limit: 2 }))
    paged.push(...page)
    const [endpointId, lane] = page.at(-1) ?? []
    if (page.length < 2) break
    after = { ...ALL, afterEndpointId: endpointId ?? 0, afterLane: lane ?? 0 }
  }
  assert.deepEqual(paged, all)
})

test('a stopped endpoint makes none of its lanes due', async () => {
  await add(db, 'a', { endpoint: 'one' })
  for (const stop of [
    "paused_at = now(), paused_reason = 'audit'",
    `paused_at = null, paused_reason = null, backoff_until = now() + interval '1 minute'`,
    `backoff_until = null, tripped_until = now() + interval '1 minute'`,
  ]) {
    await db.query(`update outbox.endpoint set ${stop} where id = $1`, one.id)
    assert.deepEqual(await dueMinutes(), [null], stop)
  }
  await db.query(`update outbox.endpoint set tripped_until = now() - interval '1 minute' where id = $1`, one.id)
  assert.deepEqual(await dueMinutes(), [0])
  assert.equal((await discover(db, ALL))[0]?.half_open, true)
  await db.query('update outbox.endpoint set tripped_until = null')
})

test('a lane with nothing but a blocked head and what is parked behind it will not be due', async () => {
  for (const key of ['head', 'behind']) await add(db, key, { endpoint: 'one', orderingKey: 'K' })
  const [head] = await lease(db, one)
  await settle(db, [result(head ?? assert.fail(), { ...GONE, verdict: 'block' })], 'p-1')
  assert.deepEqual(await dueMinutes(), [null])
})

// What waited long must be found too: after an outage, or a pause of months.
test('a row that is due since years, or in years, is no problem', async () => {
  await add(db, 'old', { endpoint: 'one' })
  await db.age('old', '20 years')
  await add(db, 'far', { endpoint: 'two', delayMs: '315360000000' })
  const [old, far] = await discover(db, ALL)
  assert.ok(old?.due_in_ms != null && old.due_in_ms < -60_000, 'long overdue')
  assert.ok(far?.due_in_ms != null && far.due_in_ms > 60_000, 'not due for long')
})

test('rows of an open transaction are not discovered, and locks are not waited for', async () => {
  const app = await begin(db)
  await add(app, 'uncommitted', { endpoint: 'one' })
  assert.deepEqual(await discover(db, ALL), [])
  await app.commit()
  const poller = await begin(db)
  assert.equal((await lease(poller, one)).length, 1)
  assert.deepEqual(await dueMinutes(), [0], 'still as it was')
  await poller.commit()
  assert.ok(((await discover(db, ALL))[0]?.due_in_ms ?? 0) > 20_000, 'the end of the lease')
})

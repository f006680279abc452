// A circuit is tried with whatever there is to try it with: an endpoint must not stay stopped because of what its lanes begin with.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { enqueue, keysOf, putClinic, testPoller } from './support/clinic.ts'
import { type TestDatabase, testDatabase } from './support/database.ts'
import { startPeer, status } from './support/peer.ts'
import { begin } from './support/session.ts'

/** Its circuit was open until now. */
const halfOpen = (db: TestDatabase) =>
  db.query(
    `update outbox.endpoint set failures = 20, failing_since = now() - interval '1 minute', trip_ms = 5000,
       tripped_until = now() - interval '1 s'`,
  )
const circuit = async (db: TestDatabase) => {
  const [row] = await db.query<{ tripMs: number | null; s: number | null }>(
    `select trip_ms as "tripMs", round(extract(epoch from tripped_until - clock_timestamp()))::int as s from outbox.endpoint`,
  )
  return row
}

test('a delivery that has to be tried alone is a probe too: it may be all that the endpoint has', async () => {
  const [db, peer] = [await testDatabase(), await startPeer()]
  await putClinic(db, peer.url)
  await enqueue(db, ['suspect'])
  await db.query('update outbox.queue set lost = 2')
  await halfOpen(db)
  const poller = testPoller(db)
  peer.next(status(500))
  await poller.runOnce()
  assert.equal(peer.received.length, 1)
  assert.deepEqual(await circuit(db), { tripMs: 10_000, s: 10 }, 'it has failed, as a probe does')
  await halfOpen(db)
  await db.query('update outbox.queue set lost = 2, next_attempt_at = now()')
  await poller.runOnce()
  assert.equal(peer.received.length, 2)
  assert.deepEqual(await circuit(db), { tripMs: null, s: null })
})

test('while it is tried, the circuit lets nothing else through', async () => {
  const [db, peer] = [await testDatabase(), await startPeer()]
  await putClinic(db, peer.url)
  await enqueue(db, ['suspect', 'plain'])
  await db.query('update outbox.queue set lost = 2 where delivery_id = (select min(delivery_id) from outbox.queue)')
  await halfOpen(db)
  peer.answer(status(500))
  const poller = testPoller(db)
  for (let round = 0; round < 3; round++) await poller.runOnce()
  assert.equal(peer.received.length, 1)
})

test('a lane that begins with such a delivery does not hide the other lanes of its endpoint', async () => {
  const [db, peer] = [await testDatabase(), await startPeer()]
  await putClinic(db, peer.url, { partitions: 4, concurrency: 4 })
  await enqueue(db, keysOf('a', 40))
  // Locked, not suspect: nothing but the other lanes is left.
  const held = await db.sql.reserve()
  await held`begin`
  const first = await held`select key from outbox.delivery d where id in (
    select delivery_id from outbox.queue where lane = (select min(lane) from outbox.queue) for update)`
  await halfOpen(db)
  const poller = testPoller(db)
  while ((await poller.runOnce()).claimed > 0);
  assert.ok(first.length > 0)
  assert.equal(peer.received.length, 40 - first.length)
  await held`rollback`
  held.release()
})

test('an endpoint that gives nothing to probe it with keeps no other from being probed', async () => {
  const [db, locked, peer] = [await testDatabase(), await startPeer(), await startPeer()]
  await putClinic(db, locked.url)
  await putClinic(db, peer.url, { name: 'other' })
  await enqueue(db, ['a'])
  await enqueue(db, ['b'], { endpoint: 'other' })
  await halfOpen(db)
  const person = await begin(db)
  await person.run(`select from outbox.endpoint where name = 'clinic' for update`, [])
  const poller = testPoller(db)
  const { claimed } = await poller.runOnce()
  assert.deepEqual([claimed, peer.received.length, locked.received.length], [1, 1, 0])
  await person.rollback()
})

// What is tried alone, in this process: what it waits for, and what waits for it.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { enqueue, keysOf, putClinic, testPoller } from './support/clinic.ts'
import { type TestDatabase, testDatabase } from './support/database.ts'
import { gate, startPeer, when } from './support/peer.ts'
import { rounds, waiting } from './support/session.ts'
import { until } from './support/until.ts'

/** As two losses in a row have left it. */
const suspect = (db: TestDatabase, key: string) =>
  db.query('update outbox.queue set lost = 2 where delivery_id = (select id from outbox.delivery where key = $1)', key)

// case C07
test('it waits until what was in flight has ended and is written, and what comes meanwhile waits for it', async () => {
  const [db, peer] = [await testDatabase(), await startPeer()]
  await putClinic(db, peer.url)
  // A trigger holds the settle of the first delivery for as long as another session has the lock.
  await db.query(
    `create function hold() returns trigger language plpgsql as $$ begin perform pg_advisory_xact_lock_shared(1842); return new; end $$`,
  )
  await db.query('create trigger hold before insert on outbox.attempt for each row execute function hold()')
  const [held, holding, first, alone] = [gate(), gate(), gate(), gate()]
  const lock = db.sql.begin(async (tx) => {
    await tx`select pg_advisory_xact_lock(1842)`
    holding.open()
    await held.opened
  })
  await holding.opened
  const poller = testPoller(db, { pollIntervalMs: 10, heartbeatMs: 50 })
  peer.next(when(first.opened), when(alone.opened))
  await enqueue(db, ['first'])
  await poller.start()
  await peer.untilReceived(1)
  await enqueue(db, ['suspect'], { delayMs: 3_600_000 })
  await suspect(db, 'suspect')
  await db.age('suspect', '2 hours')
  await rounds(db)
  await enqueue(db, keysOf('after', 5))
  first.open()
  await until('its settle waits', async () => (await waiting(db)).length > 0)
  await rounds(db)
  assert.equal(peer.received.length, 1, 'answered, not written')
  held.open()
  await lock
  await peer.untilReceived(2)
  await rounds(db)
  assert.deepEqual(
    peer.received.map(({ key }) => key),
    ['first', 'suspect'],
    'nothing else while it is in flight',
  )
  alone.open()
  await until('all are delivered', async () => (await db.query('select 1 from outbox.receipt')).length === 7)
  await poller.stop()
  assert.deepEqual(await db.query('select distinct number, outcome from outbox.attempts'), [
    { number: 1, outcome: 'delivered' },
  ])
})

test('while many are tried alone, one after the other, the rest has its turns', async () => {
  const [db, slow, quick] = [await testDatabase(), await startPeer(), await startPeer()]
  await putClinic(db, quick.url)
  await putClinic(db, slow.url, { name: 'slow' })
  const answers = Array.from({ length: 3 }, gate)
  slow.next(...answers.map(({ opened }) => when(opened)))
  await enqueue(db, keysOf('slow', 3), { endpoint: 'slow' })
  for (const key of keysOf('slow', 3)) await suspect(db, key)
  const poller = testPoller(db, { pollIntervalMs: 10, heartbeatMs: 50 })
  await poller.start()
  for (const [i, answer] of answers.entries()) {
    await slow.untilReceived(i + 1)
    assert.equal(slow.open, 1)
    await enqueue(db, [`quick-${i}`])
    await rounds(db)
    assert.equal(quick.received.length, i)
    answer.open()
    await quick.untilReceived(i + 1)
  }
  await until('all are delivered', async () => (await db.query('select 1 from outbox.receipt')).length === 6)
  await poller.stop()
})

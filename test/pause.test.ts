// A pause holds what is leased and has not been sent: while its payload is being loaded, and while it waits for a slot.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pauseEndpoint } from '../src/index.ts'
import { enqueue, keysOf, putClinic, testPoller } from './support/clinic.ts'
import { testDatabase } from './support/database.ts'
import { gate, startPeer, status, when } from './support/peer.ts'
import { until } from './support/until.ts'

/** Resolves when so many have gone back because their endpoint was stopped. */
function returns(poller: ReturnType<typeof testPoller>) {
  let count = 0
  poller.on('released', (event) => {
    if (event.reason === 'endpoint_stopped') count += event.count
  })
  return (wanted: number) => until('they go back', () => count === wanted)
}

test('what is being loaded when somebody pauses the endpoint is not sent', async () => {
  const [db, peer, store] = [await testDatabase(), await startPeer(), gate()]
  await putClinic(db, peer.url)
  await enqueue(db, ['by-ref'], { payload: undefined, payloadRef: 'claims/1' })
  let asked = 0
  const loadPayload = async () => {
    asked++
    await store.opened
    return '[]'
  }
  const poller = testPoller(db, { loadPayload, pollIntervalMs: 20, leaseMs: 60_000 })
  const untilReturned = returns(poller)
  await poller.start()
  await until('it is being loaded', () => asked > 0)
  await pauseEndpoint(db.sql, 'clinic', { by: 'ann', why: 'wrong host' })
  await untilReturned(1)
  store.open()
  await poller.stop()
  assert.equal(peer.received.length, 0)
  assert.deepEqual(await db.query('select attempts, token from outbox.queue'), [{ attempts: 0, token: null }])
})

test('what waits behind others when another host is put is not sent to the old one', async () => {
  const [db, peer, answer] = [await testDatabase(), await startPeer(), gate()]
  await putClinic(db, peer.url, { concurrency: 1, partitions: 1 })
  const poller = testPoller(db, { pollIntervalMs: 20 })
  // A lane that answers quickly is claimed one batch ahead; a busy machine makes the first answers slow.
  await enqueue(db, keysOf('quick', 20))
  await enqueue(db, ['later'], { delayMs: 3_600_000 })
  while ((await poller.runOnce()).claimed > 0);
  peer.next(when(answer.opened, status(200)))
  await enqueue(db, keysOf('a', 3))
  const untilReturned = returns(poller)
  await poller.start()
  await peer.untilReceived(21)
  await putClinic(db, 'http://other.example/', { concurrency: 1, partitions: 1 })
  await untilReturned(1)
  answer.open()
  await poller.stop()
  assert.equal(peer.received.length, 21)
})

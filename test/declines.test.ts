// Which faults make a poller say that it cannot serve an endpoint: those that another poller may be free of.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { LoadPayload } from '../src/index.ts'
import { enqueue, keysOf, putClinic, testPoller } from './support/clinic.ts'
import { type TestDatabase, testDatabase } from './support/database.ts'
import { startPeer } from './support/peer.ts'

const dueAgain = (db: TestDatabase) => db.query('update outbox.queue set next_attempt_at = now()')
const declines = async (db: TestDatabase) =>
  (await db.query<{ said: string }>(`select array_to_string(declines, ',') as said from outbox.pollers`))[0]?.said

/** Eight rounds in which everything is due, each with a new delivery of `fresh`; what the poller declines afterwards. */
async function eightRounds(loadPayload: LoadPayload, fresh: (key: string) => object) {
  const [db, peer] = [await testDatabase(), await startPeer()]
  await putClinic(db, peer.url)
  await enqueue(db, ['missing'], { payload: undefined, payloadRef: 'missing' })
  const poller = testPoller(db, { loadPayload })
  for (const key of keysOf('fresh', 8)) {
    await enqueue(db, [key], fresh(key))
    await dueAgain(db)
    await poller.runOnce()
  }
  await poller.runOnce()
  return { received: peer.received.length, declines: await declines(db) }
}

test('one payload that is missing makes nobody decline an endpoint whose other payloads are loaded', async () => {
  const load: LoadPayload = (ref) => (ref === 'missing' ? Promise.reject(new Error('no such object')) : '[]')
  const found = await eightRounds(load, (key) => ({ payload: undefined, payloadRef: key }))
  assert.deepEqual(found, { received: 8, declines: '' })
})

test('a store that gives nothing makes its poller decline the endpoint, though what carries its payload gets through', async () => {
  const found = await eightRounds(
    () => Promise.reject(new Error('down')),
    () => ({}),
  )
  assert.deepEqual(found, { received: 8, declines: 'clinic' })
})

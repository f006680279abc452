// Secrets come from a store that may be slow, empty or wrong; only the endpoint that needs them feels it.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { enqueue, keysOf, putClinic, testPoller } from './support/clinic.ts'
import { testDatabase } from './support/database.ts'
import { startPeer } from './support/peer.ts'
import { testSecretValue } from './support/secret.ts'

/** A database with the endpoints `healthy` and `other`, whose secret `vault:other` the resolver answers. */
async function twoEndpoints(resolveOther: () => Promise<string> | string) {
  const [db, peer] = [await testDatabase(), await startPeer()]
  const known = { resolve: () => testSecretValue }
  await putClinic(db, peer.url, { name: 'healthy', secret: 'vault:healthy' }, known)
  await putClinic(db, peer.url, { name: 'other', secret: 'vault:other' }, known)
  const resolveSecret = (reference: string) => (reference === 'vault:other' ? resolveOther() : testSecretValue)
  return { db, peer, poller: testPoller(db, { resolveSecret }) }
}

const states = `select endpoint, state, attempts, count(*)::int as n from outbox.deliveries group by 1, 2, 3 order by 1`

test('a secret store that never answers holds up its own endpoint alone, and no stop', async () => {
  const { db, peer, poller } = await twoEndpoints(() => new Promise(() => {}))
  await enqueue(db, keysOf('healthy', 6), { endpoint: 'healthy' })
  await enqueue(db, keysOf('other', 6), { endpoint: 'other' })
  await poller.runOnce()
  assert.equal(peer.received.length, 6)
  assert.deepEqual(await db.query(states), [
    { endpoint: 'healthy', state: 'delivered', attempts: 1, n: 6 },
    { endpoint: 'other', state: 'waiting', attempts: 0, n: 6 },
  ])
  await poller.stop({ graceMs: 0 })
})

test('an empty secret is one that is still to come: nothing goes dead, all of one claim come back together', async () => {
  let value = ''
  const { db, peer, poller } = await twoEndpoints(() => value)
  await enqueue(db, keysOf('other', 30), { endpoint: 'other' })
  await poller.runOnce()
  assert.deepEqual(await db.query(states), [{ endpoint: 'other', state: 'waiting', attempts: 0, n: 30 }])
  const [late] = await db.query(
    `select count(*)::int as n from outbox.queue where next_attempt_at > clock_timestamp() + interval '1.1 seconds'`,
  )
  assert.equal(late?.n, 0, 'one fault, one second')
  value = testSecretValue
  for (const key of keysOf('other', 30)) await db.age(key, '2 seconds')
  await poller.runOnce()
  assert.equal(peer.received.length, 30)
})

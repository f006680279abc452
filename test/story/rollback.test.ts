import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createPoller, outbox, putEndpoint } from '../../src/index.ts'
import { testDatabase } from '../support/database.ts'
import { startPeer } from '../support/peer.ts'
import { testSecret } from '../support/secret.ts'

const db = await testDatabase()
const peer = await startPeer()

// case C40
test('what a rolled-back transaction enqueued is never sent', async () => {
  await putEndpoint(db.sql, {
    name: 'clinic',
    url: peer.url,
    secret: testSecret(),
    allowInsecure: true,
    allowPrivate: true,
  })
  const enqueue = (tx: Parameters<typeof outbox.enqueue>[0], key: string) =>
    outbox.enqueue(tx, { key, endpoint: 'clinic', type: 'eligibility.changed', payload: { key } })
  await assert.rejects(
    db.sql.begin(async (tx) => {
      await enqueue(tx, 'rolled-back')
      throw new Error('business rule')
    }),
    /business rule/,
  )
  await db.sql.begin((tx) => enqueue(tx, 'committed'))
  const poller = createPoller({ databaseUrl: db.url })
  await poller.runOnce()
  await poller.stop()
  assert.deepEqual(
    peer.received.map((request) => request.key),
    ['committed'],
  )
  assert.deepEqual(await db.query('select key, state from outbox.deliveries'), [
    { key: 'committed', state: 'delivered' },
  ])
})

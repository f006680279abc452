// What a batch of attempts says of its endpoints must not keep it from being settled.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { enqueue, putClinic, testPoller } from './support/clinic.ts'
import { testDatabase } from './support/database.ts'
import { startPeer, status } from './support/peer.ts'
import { begin } from './support/session.ts'
import { until } from './support/until.ts'

test('an endpoint that a person keeps locked holds back no outcome, of others or its own', async () => {
  const [db, failing, peer] = [await testDatabase(), await startPeer(), await startPeer()]
  failing.next(status(500))
  await putClinic(db, failing.url)
  await putClinic(db, peer.url, { name: 'other' })
  const session = await begin(db)
  await session.run(`select from outbox.endpoint where name = 'clinic' for update`, [])
  const poller = testPoller(db)
  const troubles: object[] = []
  poller.on('trouble', (trouble) => troubles.push(trouble))
  await enqueue(db, ['fails'])
  await poller.start()
  await failing.untilReceived(1)
  await enqueue(db, ['other'], { endpoint: 'other' })
  await until('both are settled', async () => (await db.query('select from outbox.attempt')).length === 2)
  assert.deepEqual(await db.query('select key, outcome, reason from outbox.attempts order by key'), [
    { key: 'fails', outcome: 'unknown', reason: 'http_500' },
    { key: 'other', outcome: 'delivered', reason: null },
  ])
  assert.deepEqual(troubles, [{ during: 'report', code: '55P03' }])
  await session.rollback()
  await poller.stop()
})

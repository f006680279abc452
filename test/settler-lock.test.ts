// What a batch of attempts says of its endpoints must not keep it from being settled.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { enqueue, putClinic, testPoller } from './support/clinic.ts'
import { testDatabase } from './support/database.ts'
import { gate, startPeer, status, when } from './support/peer.ts'
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

test('while one endpoint is locked, what is said of the others in the same batch is kept', async () => {
  const [db, peer, answer] = [await testDatabase(), await startPeer(), gate()]
  for (const name of ['clinic', 'other']) await putClinic(db, peer.url, { name })
  peer.answer(when(answer.opened, status(429, { 'retry-after': '600' })))
  await enqueue(db, ['a'])
  await enqueue(db, ['b'], { endpoint: 'other' })
  const poller = testPoller(db)
  const round = poller.runOnce()
  await peer.untilReceived(2)
  const session = await begin(db)
  await session.run(`select from outbox.endpoint where name = 'clinic' for update`, [])
  answer.open()
  await round
  const backing = 'select name from outbox.endpoint where backoff_until > now()'
  assert.deepEqual(await db.query(backing), [{ name: 'other' }])
  assert.equal((await db.query('select from outbox.attempt where http_status = 429')).length, 2)
  await session.rollback()
})

test('a report that the database refuses for good costs no outcome of its batch', async () => {
  const [db, peer] = [await testDatabase(), await startPeer()]
  for (const name of ['clinic', 'other']) await putClinic(db, `${peer.url}/${name}`, { name })
  await db.query('alter table outbox.endpoint add constraint refuses check (failures = 0)')
  peer.next(status(500))
  await enqueue(db, ['fails'])
  await enqueue(db, ['b', 'c', 'd'], { endpoint: 'other' })
  const troubles: object[] = []
  const poller = testPoller(db)
  poller.on('trouble', (trouble) => troubles.push(trouble))
  await poller.runOnce()
  assert.deepEqual(await db.query('select outcome, count(*)::int as n from outbox.attempt group by 1 order by 1'), [
    { outcome: 'delivered', n: 3 },
    { outcome: 'unknown', n: 1 },
  ])
  assert.deepEqual(troubles, [{ during: 'report', code: '23514' }])
})

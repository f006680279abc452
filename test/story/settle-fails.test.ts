import assert from 'node:assert/strict'
import { test } from 'node:test'
import { enqueue, keysOf, putClinic, testPoller } from '../support/clinic.ts'
import { testDatabase } from '../support/database.ts'
import { gate, startPeer, status, when } from '../support/peer.ts'
import { startProxy } from '../support/proxy.ts'
import { until } from '../support/until.ts'

const db = await testDatabase()
const proxy = await startProxy(db.url)
const peer = await startPeer()

const receipts = async () => (await db.query(`select 1 from outbox.receipt where ending = 'delivered'`)).length

// case C09
test('results that cannot be written for seconds are written from memory; slots are freed; nothing is sent twice', async () => {
  await putClinic(db, peer.url, { concurrency: 512 })
  await enqueue(db, keysOf('before', 8))
  const answer = gate()
  peer.answer(when(answer.opened))
  const poller = testPoller(proxy, { slots: 8, pollIntervalMs: 50 })
  let tries = 0
  poller.on('database.trouble', (trouble) => {
    if (trouble.during === 'settle') tries = Math.max(tries, trouble.tries)
  })
  await poller.start()
  await peer.untilReceived(8)
  proxy.refuse()
  const since = performance.now()
  answer.open()
  // 50 ms, doubled each time: eight of them take five seconds or more.
  await until('writing has failed for five seconds', () => performance.now() - since > 5_000 && tries >= 4)
  assert.equal(await receipts(), 0)

  peer.answer(status(200))
  await enqueue(db, keysOf('after', 30))
  await proxy.open()
  // Within seconds: no pause of the driver is left over.
  await until('everything is delivered', async () => (await receipts()) === 38, 9_000)
  await poller.stop()
  assert.deepEqual(
    await db.query('select outcome, reason, number, count(*)::int as n from outbox.attempts group by 1, 2, 3'),
    [{ outcome: 'delivered', reason: null, number: 1, n: 38 }],
  )
  assert.equal(peer.received.length, 38)
  assert.equal(new Set(peer.received.map(({ key }) => key)).size, 38)
})

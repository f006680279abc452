import assert from 'node:assert/strict'
import { test } from 'node:test'
import { enqueue, putClinic, testPoller } from '../support/clinic.ts'
import { testDatabase } from '../support/database.ts'
import { startPeer, status } from '../support/peer.ts'

const db = await testDatabase()
const peer = await startPeer()

// case C85
test('a limit of three attempts is three requests; the third outcome and the end are one commit', async () => {
  await putClinic(db, peer.url, { maxAttempts: 3, retryDelayMs: 0 })
  await enqueue(db, ['capture-1842'])
  peer.answer(status(503))
  const poller = testPoller(db)
  const rounds = [await poller.runOnce(), await poller.runOnce(), await poller.runOnce(), await poller.runOnce()]
  assert.deepEqual(
    rounds.map(({ claimed }) => claimed),
    [1, 1, 1, 0],
  )
  assert.deepEqual(
    peer.received.map(({ number }) => number),
    [1, 2, 3],
  )
  assert.deepEqual(await db.query('select number, outcome, verdict, reason from outbox.attempts order by number'), [
    { number: 1, outcome: 'unknown', verdict: 'retry', reason: 'http_503' },
    { number: 2, outcome: 'unknown', verdict: 'retry', reason: 'http_503' },
    { number: 3, outcome: 'unknown', verdict: 'dead', reason: 'http_503' },
  ])
  assert.deepEqual(await db.query('select attempts, reason, certainty, maybe_applied from outbox.dead'), [
    { attempts: 3, reason: 'exhausted', certainty: 'unknown', maybe_applied: true },
  ])
  assert.deepEqual(
    await db.query(
      `select a.xmin = r.xmin as together, (select count(*)::int from outbox.queue) as queued
       from outbox.attempt a join outbox.receipt r using (delivery_id) where a.number = 3`,
    ),
    [{ together: true, queued: 0 }],
  )
})

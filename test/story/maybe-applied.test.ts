import assert from 'node:assert/strict'
import { test } from 'node:test'
import { deliverOnce, enqueue, forgive, putClinic } from '../support/clinic.ts'
import { testDatabase } from '../support/database.ts'
import { silence, startPeer, status } from '../support/peer.ts'

const db = await testDatabase()
const peer = await startPeer()

test('a timeout and then a 410: dead, and it may have been applied', async () => {
  await putClinic(db, peer.url, { timeoutMs: 200 })
  await enqueue(db, ['capture-1842', 'capture-1843'])
  peer.next(silence, silence)
  await deliverOnce(db)
  await db.age('capture-1842', '6 minutes')
  await putClinic(db, peer.url, { timeoutMs: null })
  peer.next(status(410))
  await deliverOnce(db)
  assert.deepEqual(
    await db.query('select key, reason, certainty, maybe_applied, last_status, attempts from outbox.dead'),
    [
      {
        ...{ key: 'capture-1842', reason: 'gone', certainty: 'unknown', maybe_applied: true },
        ...{ last_status: 410, attempts: 2 },
      },
    ],
  )
  assert.deepEqual(
    await db.query('select number, outcome, reason from outbox.attempts where key = $1', 'capture-1842'),
    [
      { number: 1, outcome: 'unknown', reason: 'request_timeout' },
      { number: 2, outcome: 'rejected', reason: 'gone' },
    ],
  )
})

test('a 410 at once is a known failure', async () => {
  await forgive(db)
  await enqueue(db, ['capture-1844'])
  peer.next(status(410))
  await deliverOnce(db)
  assert.deepEqual(await db.query('select certainty, maybe_applied from outbox.dead where key = $1', 'capture-1844'), [
    { certainty: 'rejected', maybe_applied: false },
  ])
})

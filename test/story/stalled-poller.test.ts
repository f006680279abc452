// A process that stands still past its lease has not lost what arrived meanwhile: its answer is read, then the clock is looked at.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { enqueue, putClinic } from '../support/clinic.ts'
import { testDatabase } from '../support/database.ts'
import { startPeer, status } from '../support/peer.ts'
import { QUICK, startWorker } from '../support/process.ts'
import { until } from '../support/until.ts'

// case C02
test('the 200 that came while a poller was stopped past its lease is in the ledger, not a timeout', async () => {
  const [db, peer] = [await testDatabase(), await startPeer()]
  await putClinic(db, peer.url)
  const work = await startWorker(db, QUICK)
  peer.next((response, request, socket) => {
    work.kill('SIGSTOP')
    status(200)(response, request, socket)
  })
  await enqueue(db, ['capture-1842'])
  await peer.untilReceived(1)
  const leaseOver = 'select from outbox.queue where token is not null and next_attempt_at < clock_timestamp()'
  await until('the lease to run out', async () => (await db.query(leaseOver)).length === 1)
  work.kill('SIGCONT')
  await until('the end', async () => (await db.query('select from outbox.receipt')).length === 1)
  // It may have been leased again before the answer was written: then that is one more attempt, and the evidence stands.
  const first = `select outcome, http_status from outbox.attempts where number = 1`
  await until('the evidence', async () => (await db.query(`${first} and outcome = 'delivered'`)).length === 1)
  assert.deepEqual(await db.query(first), [{ outcome: 'delivered', http_status: 200 }])
  assert.deepEqual(await db.query('select ending, certainty from outbox.receipt'), [
    { ending: 'delivered', certainty: 'delivered' },
  ])
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { enqueue, keysOf, putClinic } from '../support/clinic.ts'
import { testDatabase } from '../support/database.ts'
import { silence, startPeer } from '../support/peer.ts'
import { QUICK, startWorker } from '../support/process.ts'

const db = await testDatabase()
const peer = await startPeer()

// case C04
test('an endpoint that hangs never has two requests of one delivery open at once', async () => {
  await putClinic(db, peer.url, { retryDelayMs: 0 })
  await enqueue(db, keysOf('capture', 8))
  peer.answer(silence)
  const flags = { ...QUICK, 'lease-ms': 700, 'timeout-ms': 400, 'settle-budget-ms': 100 }
  const workers = await Promise.all(['a', 'b'].map((name) => startWorker(db, { ...flags, name })))
  // Each delivery several times.
  await peer.untilReceived(50)
  for (const worker of workers) worker.kill('SIGTERM')
  for (const worker of workers) assert.equal((await worker.ended).code, 0)
  assert.deepEqual(peer.overlapping, [])
  const outcomes = await db.query('select distinct outcome from outbox.attempts')
  assert.deepEqual(outcomes, [{ outcome: 'unknown' }])
  const [ledger] = await db.query<{ n: number }>('select count(*)::int as n from outbox.attempts where request_sent')
  assert.equal(ledger?.n, peer.received.length)
})

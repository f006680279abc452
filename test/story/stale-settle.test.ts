import assert from 'node:assert/strict'
import { test } from 'node:test'
import { enqueue, putClinic } from '../support/clinic.ts'
import { testDatabase } from '../support/database.ts'
import { gate, startPeer, status, when } from '../support/peer.ts'
import { QUICK, startWorker } from '../support/process.ts'
import { startProxy } from '../support/proxy.ts'
import { until } from '../support/until.ts'

const db = await testDatabase()
const proxy = await startProxy(db.url)
const peer = await startPeer()

const ledger = () =>
  db.query('select number, outcome, verdict, reason, http_status, poller from outbox.attempts order by number')

// case C02
test('a settle that comes after its lease changes nothing, and what it knows is kept', async () => {
  await putClinic(db, peer.url)
  const [first, second] = [gate(), gate()]
  peer.next(when(first.opened), when(second.opened, status(410)))

  // A has sent, loses the database, gets its 200 and cannot write it.
  const a = await startWorker({ url: proxy.url }, { ...QUICK, name: 'a' })
  await enqueue(db, ['capture-1842'])
  await peer.untilReceived(1)
  proxy.refuse()
  first.open()
  await until('the answer has reached A', () => peer.open === 0)

  // B takes the row over when the lease has run out, and is in mid-request.
  const b = await startWorker(db, { ...QUICK, 'lease-ms': 30_000, 'timeout-ms': 20_000, name: 'b' })
  await peer.untilReceived(2)
  const held = await db.query('select delivery_id, token, attempts, next_attempt_at::text from outbox.queue')
  assert.deepEqual(await ledger(), [
    { number: 1, outcome: 'unknown', verdict: 'retry', reason: 'worker_lost', http_status: null, poller: 'a' },
  ])

  // A's 200 arrives while B holds the row.
  await proxy.open()
  await until('A has been told that it is late', () => a.log.some((line) => line.msg === 'result came after its lease'))
  const evidence = {
    number: 1,
    outcome: 'delivered',
    verdict: 'delivered',
    reason: null,
    http_status: 200,
    poller: 'a',
  }
  assert.deepEqual(await ledger(), [evidence])
  assert.deepEqual(
    await db.query('select delivery_id, token, attempts, next_attempt_at::text from outbox.queue'),
    held,
    "B's row is untouched",
  )

  // B's 410 stands in the ledger; the delivery was delivered all the same, and is not called dead.
  second.open()
  await until('the delivery has ended', async () => (await db.query('select 1 from outbox.receipt')).length === 1)
  assert.deepEqual(await ledger(), [
    evidence,
    { number: 2, outcome: 'rejected', verdict: 'delivered', reason: 'gone', http_status: 410, poller: 'b' },
  ])
  assert.deepEqual(await db.query('select state, certainty, terminal_reason, attempts from outbox.deliveries'), [
    { state: 'delivered', certainty: 'delivered', terminal_reason: 'late', attempts: 2 },
  ])
  assert.equal(peer.received.length, 2)
  for (const worker of [a, b]) {
    worker.kill('SIGTERM')
    assert.equal((await worker.ended).code, 0)
    assert.deepEqual(worker.complaints, [])
  }
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { enqueue, putClinic } from '../support/clinic.ts'
import { testDatabase } from '../support/database.ts'
import { gate, startPeer, status, when } from '../support/peer.ts'
import { startWorker } from '../support/process.ts'
import { until } from '../support/until.ts'

const [db, peer] = [await testDatabase(), await startPeer()]
const FLAGS = { name: 'clinic-worker', 'poll-interval-ms': 50 }

// case C11
test('a name is not a token: the settle of a poller that was replaced by one of its name matches nothing', async () => {
  await putClinic(db, peer.url)
  await enqueue(db, ['capture-1842'])
  const [first, second] = [gate(), gate()]
  peer.next(when(first.opened, status(410)), when(second.opened))
  const old = await startWorker(db, FLAGS)
  await peer.untilReceived(1)
  old.kill('SIGSTOP')
  await db.age('capture-1842', '31 seconds')
  const restarted = await startWorker(db, FLAGS)
  await peer.untilReceived(2)
  const held = await db.query('select * from outbox.queue')
  assert.equal(held[0]?.leased_by, 'clinic-worker')

  first.open()
  old.kill('SIGCONT')
  await until('the old one is told so', () => old.log.some(({ msg }) => msg === 'result came after its lease'))
  // What it learned counts as evidence only: its attempt was not applied.
  const asWas = held.map((row) => ({ ...row, maybe_applied_at: null }))
  assert.deepEqual(await db.query('select * from outbox.queue'), asWas, 'the lease of the new one is as it was')
  assert.deepEqual(await db.query('select 1 from outbox.receipt'), [])

  second.open()
  await until('it is delivered', async () => (await db.query('select 1 from outbox.receipt')).length === 1)
  assert.deepEqual(await db.query('select number, outcome, http_status, poller from outbox.attempts order by number'), [
    { number: 1, outcome: 'rejected', http_status: 410, poller: 'clinic-worker' },
    { number: 2, outcome: 'delivered', http_status: 200, poller: 'clinic-worker' },
  ])
  for (const worker of [old, restarted]) {
    worker.kill('SIGTERM')
    assert.equal((await worker.ended).code, 0)
  }
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { enqueue, keysOf, putClinic } from '../support/clinic.ts'
import { testDatabase } from '../support/database.ts'
import { gate, startPeer, when } from '../support/peer.ts'
import { startWorker } from '../support/process.ts'
import { until } from '../support/until.ts'

const [db, slow, quick] = [await testDatabase(), await startPeer(), await startPeer()]

// case C17
test('with two connections and 50 requests in flight nothing is idle in transaction, and claims and settles go on', async () => {
  await putClinic(db, slow.url, { name: 'slow', concurrency: 512 })
  await putClinic(db, quick.url)
  await enqueue(db, keysOf('slow', 50), { endpoint: 'slow' })
  const answer = gate()
  slow.answer(when(answer.opened))
  const worker = await startWorker(db, { connections: 2, 'poll-interval-ms': 50 })
  await slow.untilReceived(50)
  const looks: { idle: number; connections: number }[] = []
  for (let round = 1; round <= 20; round++) {
    await enqueue(db, keysOf(`round-${round}`, 10))
    await until('the round is delivered', async () => {
      const [look] = await db.query<{ idle: number; connections: number }>(
        `select count(*) filter (where state like 'idle in transaction%')::int as idle, count(*)::int as connections
         from pg_stat_activity where datname = current_database() and application_name = 'outledger'`,
      )
      if (look !== undefined) looks.push(look)
      return (await db.query('select 1 from outbox.receipt')).length === 10 * round
    })
  }
  assert.equal(slow.open, 50, 'all the while')
  assert.ok(looks.length >= 20)
  assert.equal(Math.max(...looks.map(({ idle }) => idle)), 0)
  assert.ok(Math.max(...looks.map(({ connections }) => connections)) <= 2)
  answer.open()
  await until('all are delivered', async () => (await db.query('select 1 from outbox.receipt')).length === 250)
  worker.kill('SIGTERM')
  assert.equal((await worker.ended).code, 0)
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { enqueue, putClinic } from '../support/clinic.ts'
import { testDatabase } from '../support/database.ts'
import { startPeer, status } from '../support/peer.ts'
import { startWorker } from '../support/process.ts'
import { until } from '../support/until.ts'

const db = await testDatabase()
const peer = await startPeer()

const requests = () => peer.received.filter(({ key }) => key === 'capture-1842').map(({ number }) => number)
const delivered = (key: string) =>
  until(
    `${key} is delivered`,
    async () =>
      (await db.query(`select 1 from outbox.deliveries where key = $1 and state = 'delivered'`, key)).length === 1,
  )

test('a retry waits five minutes in the database, over the restart of the poller, and comes at its time', async () => {
  await putClinic(db, peer.url)
  await enqueue(db, ['capture-1842'])
  peer.next(status(503))
  const first = await startWorker(db)
  const [waits] = await until('the retry is written down', async () => {
    const rows = await db.query<{ s: number; at: string }>(
      `select extract(epoch from d.next_attempt_at - a.finished_at)::float8 as s
       from outbox.deliveries d join outbox.attempts a using (key) where d.state = 'waiting'`,
    )
    return rows.length === 1 && rows
  })
  assert.ok((waits?.s ?? 0) >= 300 && (waits?.s ?? 0) <= 330 + 5, `waits ${waits?.s} s`)
  first.kill('SIGTERM')
  assert.equal((await first.ended).code, 0)

  // Not earlier: another process delivers what is due, and leaves it alone.
  const second = await startWorker(db)
  await enqueue(db, ['marker-1', 'marker-2', 'marker-3', 'marker-4'])
  for (const key of ['marker-1', 'marker-2', 'marker-3', 'marker-4']) await delivered(key)
  assert.deepEqual(requests(), [1])

  // Almost five minutes pass. What is left of them passes by itself.
  const [left] = await db.query<{ interval: string }>(
    `select (next_attempt_at - clock_timestamp() - interval '2 seconds')::text as interval from outbox.deliveries where key = 'capture-1842'`,
  )
  await db.age('capture-1842', left?.interval ?? '')
  const [at] = await db.query<{ time: string }>(
    `select next_attempt_at::text as time from outbox.deliveries where key = 'capture-1842'`,
  )
  await delivered('capture-1842')
  assert.deepEqual(requests(), [1, 2])
  const [second_] = await db.query<{ after: number; lag_ms: string }>(
    `select extract(epoch from started_at - $1::text::timestamptz)::float8 as after, lag_ms from outbox.attempts
     where key = 'capture-1842' and number = 2`,
    at?.time ?? '',
  )
  // The start is reckoned back from the settle in whole milliseconds.
  assert.ok((second_?.after ?? -1) >= -0.002, `it came ${second_?.after} s after its time`)
  assert.ok(
    (second_?.after ?? 9) < 1 + 1 + 2,
    `it came ${second_?.after} s after its time: a poll interval and a second at most`,
  )
  assert.ok(Number(second_?.lag_ms) < 4_000, `the ledger says ${second_?.lag_ms} ms`)
  second.kill('SIGTERM')
  assert.equal((await second.ended).code, 0)
})

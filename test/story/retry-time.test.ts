// Retries start within the tolerance of their persisted time: measured in the ledger, made by the real command.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { putClinic } from '../support/clinic.ts'
import { type TestDatabase, testDatabase } from '../support/database.ts'
import { type Peer, startPeer, status } from '../support/peer.ts'
import { startWorker } from '../support/process.ts'
import { until } from '../support/until.ts'

const POLL_MS = 1_000

/** A thousand deliveries whose first attempt fails and whose second succeeds. */
async function thousand(db: TestDatabase, peer: Peer, settings: Parameters<typeof putClinic>[2] = {}): Promise<void> {
  await putClinic(db, peer.url, settings)
  peer.answer((response, { number }, socket) => status(number === 1 ? 503 : 200)(response, { number } as never, socket))
  await db.query(
    `select count(*) from generate_series(1, 1000) i cross join lateral outbox.enqueue('clinic', 'retry-' || i, 'eligibility.changed', '{"n":1}') e`,
  )
}

interface Waits {
  readonly n: number
  readonly first: number
  readonly last: number
  readonly lag50: number
  readonly lag99: number
  readonly lag_max: number
}

/** From the end of the first attempt to the start of the second, in milliseconds, and the lag behind the persisted time. */
async function waits(db: TestDatabase): Promise<Waits> {
  const [row] = await db.query<Waits>(
    `select count(*)::int as n, 1000 * min(extract(epoch from b.started_at - a.finished_at))::float8 as first,
            1000 * max(extract(epoch from b.started_at - a.finished_at))::float8 as last,
            percentile_cont(0.5) within group (order by b.lag_ms) as lag50,
            percentile_cont(0.99) within group (order by b.lag_ms) as lag99, max(b.lag_ms)::float8 as lag_max
     from outbox.attempt a join outbox.attempt b on b.delivery_id = a.delivery_id and a.number = 1 and b.number = 2`,
  )
  return row ?? assert.fail()
}

const count = async (db: TestDatabase, table: string) =>
  (await db.query<{ n: number }>(`select count(*)::int as n from outbox.${table}`))[0]?.n ?? 0

test('a thousand retries each start no earlier than their time and within the tolerance after it', async (t) => {
  const [db, peer] = [await testDatabase(), await startPeer()]
  const delayMs = 2_000
  await thousand(db, peer, { retryDelayMs: delayMs })
  const worker = await startWorker(db)
  await until('all are delivered', async () => (await count(db, 'receipt')) === 1_000, 60_000)
  worker.kill('SIGTERM')
  assert.equal((await worker.ended).code, 0)
  const { n, first, last, ...lag } = await waits(db)
  t.diagnostic(`waited ${first} to ${last} ms; lag ${JSON.stringify(lag)}`)
  assert.equal(n, 1_000)
  assert.ok(first >= delayMs, `after ${first} ms`)
  assert.ok(last <= delayMs * 1.1 + POLL_MS + 1_000, `after ${last} ms`)
  assert.deepEqual(await db.query('select number, count(*)::int as n from outbox.attempt group by 1 order by 1'), [
    { number: 1, n: 1_000 },
    { number: 2, n: 1_000 },
  ])
})

test('the five minutes are in the ledger: another process keeps them, to the same tolerance', async (t) => {
  const [db, peer] = [await testDatabase(), await startPeer()]
  await thousand(db, peer)
  const before = await startWorker(db)
  await until('all have failed once', async () => (await count(db, 'attempt')) === 1_000, 60_000)
  before.kill('SIGTERM')
  assert.equal((await before.ended).code, 0)
  /** Time passes, for all that wait alike, until the first failure is so many seconds ago. */
  const passTo = (seconds: number) =>
    db.query(
      `with p as (
         select greatest(interval '0', $1::text::float8 * interval '1 second' - (clock_timestamp() - min(a.finished_at))) as time
         from outbox.attempt a where a.number = 1
       ), q as (
         update outbox.queue set next_attempt_at = next_attempt_at - (select time from p),
           first_attempt_at = first_attempt_at - (select time from p), maybe_applied_at = maybe_applied_at - (select time from p)
         where token is null returning delivery_id)
       update outbox.attempt a set started_at = a.started_at - (select time from p), finished_at = a.finished_at - (select time from p)
       from q where a.delivery_id = q.delivery_id`,
      seconds,
    )
  await passTo(299)
  const worker = await startWorker(db)
  await until('the first are back', async () => (await count(db, 'receipt')) >= 50, 60_000)
  assert.ok((await count(db, 'receipt')) < 1_000, 'others still wait')
  await passTo(329)
  await until('all are delivered', async () => (await count(db, 'receipt')) === 1_000, 60_000)
  worker.kill('SIGTERM')
  assert.equal((await worker.ended).code, 0)
  const { n, first, last } = await waits(db)
  t.diagnostic(`waited ${first} to ${last} ms`)
  assert.equal(n, 1_000)
  assert.ok(first >= 300_000, `after ${first} ms`)
  assert.equal(peer.received.length, 2_000)
  // Nine hundred of them are due at once after the leap: ten seconds more for a busy machine.
  assert.ok(last <= 330_000 + POLL_MS + 1_000 + 10_000, `after ${last} ms`)
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { deliverOnce, putClinic, testPoller } from '../support/clinic.ts'
import { testDatabase } from '../support/database.ts'
import { startPeer, status } from '../support/peer.ts'
import { until } from '../support/until.ts'

const [db, peer] = [await testDatabase(), await startPeer()]
const ROWS = 4_400
/** Every eleventh is taken: an endpoint that fails every time for ten seconds, on a slow machine, is sent no more. */
const FAILED = 4_000
const BUCKETS = 10

// case C27
test('thousands that fail together come back over a window that starts at five minutes, evenly', async () => {
  await putClinic(db, peer.url, { concurrency: 1_000 })
  let n = 0
  peer.answer((response, ...rest) => status(++n % 11 === 0 ? 200 : 503)(response, ...rest))
  await db.query(
    `select count(*) from generate_series(1, $1::text::int) i cross join lateral outbox.enqueue('clinic', 'crowd-' || i, 'eligibility.changed', '{"n":1}') e`,
    String(ROWS),
  )
  const poller = testPoller(db, { slots: 500 })
  await poller.start()
  const attempts = () => db.query<{ n: number }>('select count(*)::int as n from outbox.attempt')
  await until('all were tried', async () => (await attempts())[0]?.n === ROWS, 60_000)
  await poller.stop()
  const [waits] = await db.query<{ n: number; min: number; max: number }>(
    `select count(*)::int as n, min(s)::float8 as min, max(s)::float8 as max from (
       select extract(epoch from q.next_attempt_at - a.finished_at) as s from outbox.queue q join outbox.attempt a using (delivery_id)) w`,
  )
  assert.equal(waits?.n, FAILED)
  assert.ok((waits?.min ?? 0) >= 300, `the first comes back after ${waits?.min} s`)
  assert.ok((waits?.max ?? 0) <= 330.001, `the last comes back after ${waits?.max} s`)
  const buckets = await db.query<{ n: number }>(
    `select count(*)::int as n from (
       select least(9, floor((extract(epoch from q.next_attempt_at - a.finished_at) - 300) / 3)) as bucket
       from outbox.queue q join outbox.attempt a using (delivery_id)) w group by bucket order by bucket`,
  )
  assert.equal(buckets.length, BUCKETS)
  // Six standard deviations of a fair draw: 400 ± 114.
  const [expected, off] = [FAILED / BUCKETS, 6 * Math.sqrt((FAILED / BUCKETS) * (1 - 1 / BUCKETS))]
  for (const { n } of buckets) assert.ok(Math.abs(n - expected) < off, `${buckets.map((b) => b.n)}`)
  // Before those five minutes are over nothing goes out, whoever looks.
  assert.equal((await deliverOnce(db)).claimed, 0)
})

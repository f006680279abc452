import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { putClinic } from '../support/clinic.ts'
import { testDatabase } from '../support/database.ts'
import { gate, startPeer, status, when } from '../support/peer.ts'
import { startWorker } from '../support/process.ts'
import { rounds } from '../support/session.ts'
import { until } from '../support/until.ts'

const TOLERANCE = 0.15

/** The most memory that a worker ever had, in MB, with a backlog of `rows` × 10 KB, some of it delivered and 64 in flight. */
async function peakMb(rows: number): Promise<number> {
  const [db, peer] = [await testDatabase(), await startPeer()]
  // Neither the endpoint nor its lanes are the limit: the slots are.
  await putClinic(db, peer.url, { concurrency: 10_000, partitions: 8 })
  await db.query(
    `with t as materialized (select '{"pad":"' || repeat('x', 10240) || '"}' as text),
     p as materialized (select text::json as payload, sha256(text::bytea) as sha, length(text) as bytes from t), d as (
       insert into outbox.delivery (key, endpoint_id, lane, type, payload, payload_sha256, payload_bytes, discovered_by, scheduled_at)
       select 'big-' || i, 1, 1024 + i % 8, 'eligibility.changed', p.payload, p.sha, p.bytes, 'app', now()
       from p, generate_series(1, $1::text::int) i returning id, lane)
     insert into outbox.queue (delivery_id, next_attempt_at, endpoint_id, lane) select id, now(), 1, lane from d`,
    String(rows),
  )
  const never = gate()
  peer.answer((response, request, socket) => {
    const answer = peer.received.length <= 500 ? status(200) : when(never.opened)
    return answer(response, request, socket)
  })
  const worker = await startWorker(db, { 'heartbeat-ms': 200, 'poll-interval-ms': 100 })
  await until('its slots are full', () => peer.open === 64, 60_000)
  await rounds(db, 3)
  const [leased] = await db.query<{ n: number }>('select count(*)::int as n from outbox.queue where token is not null')
  assert.ok((leased?.n ?? 0) <= 128, `${leased?.n} leased: 64 slots, and at most as many ahead`)
  const peak = Number(/VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${worker.pid}/status`, 'utf8'))?.[1]) / 1_024
  worker.kill('SIGKILL')
  await worker.ended
  return peak
}

// case C29
test('after an outage the memory of a poller is bounded by its slots: twice the backlog needs no more', {
  skip: process.platform !== 'linux' && 'reads /proc',
}, async (t) => {
  const [none = 0, once = 0, twice = 0] = await Promise.all([peakMb(600), peakMb(20_000), peakMb(40_000)])
  t.diagnostic(
    `${Math.round(none)} MB with hardly a backlog, ${Math.round(once)} MB with 20 000 rows, ${Math.round(twice)} MB with 40 000`,
  )
  assert.ok(none > 20 && once <= none * 1.3, `${none} MB, then ${once} MB`)
  assert.ok(twice <= once * (1 + TOLERANCE), `${once} MB, then ${twice} MB`)
})

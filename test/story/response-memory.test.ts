import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import { test } from 'node:test'
import { enqueue, keysOf, putClinic } from '../support/clinic.ts'
import { testDatabase } from '../support/database.ts'
import { startFaultPeer } from '../support/fault-peer.ts'
import { bodyOf, drip, type Fault, gzipBomb } from '../support/faults.ts'
import { gate } from '../support/peer.ts'
import { startWorker } from '../support/process.ts'
import { until } from '../support/until.ts'

const LIMIT_MB = 250
const BODY_BYTES = 50_000_000
const READ_BYTES = 16_384

const db = await testDatabase()
const peer = await startFaultPeer()

const memoryMb = (pid: number, of: 'VmHWM' | 'VmRSS'): number =>
  Number(new RegExp(`${of}:\\s+(\\d+) kB`).exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1_024

// cases C44, C61
test('the memory of a poller stays under 250 MB while 64 attempts at once meet 50 MB bodies, gzip bombs and drips', {
  skip: process.platform !== 'linux' && 'reads /proc',
}, async (t) => {
  // Neither the endpoint nor its lanes are the limit: the slots are. The drips last until this deadline.
  await putClinic(db, peer.url, { concurrency: 10_000, timeoutMs: 5_000, captureResponse: true })
  const answers = gate()
  const answered: Socket[] = []
  const held = (fault: Fault): Fault => ({
    ...fault,
    async act(wire) {
      await answers.opened
      if (fault !== dripping) answered.push(wire.raw)
      fault.act(wire)
    },
  })
  const dripping = drip(200)
  const faults = { body: bodyOf(200, BODY_BYTES), error: bodyOf(500, BODY_BYTES), bomb: gzipBomb(200), drip: dripping }
  const keys = Object.entries(faults).flatMap(([name, fault]) => {
    // A quarter of the slots drip to the end; what else there is comes behind each other in the others.
    const named = keysOf(name, fault === dripping ? 16 : 48)
    for (const key of named) peer.meet(key, held(fault))
    return named
  })
  // Of each kind some are among the first.
  await enqueue(
    db,
    keys.toSorted((a, b) => Number(a.split('-')[1]) - Number(b.split('-')[1])),
  )

  const worker = await startWorker(db)
  const before = memoryMb(worker.pid, 'VmRSS')
  await peer.untilComplete(64)
  assert.equal(peer.open, 64)
  answers.open()
  await until('all attempts are on record', async () => {
    const [row] = await db.query<{ n: number }>('select count(*)::int as n from outbox.attempt')
    return row?.n === keys.length
  })
  const peak = memoryMb(worker.pid, 'VmHWM')
  worker.kill('SIGTERM')
  assert.equal((await worker.ended).code, 0)
  t.diagnostic(`${Math.round(before)} MB before the first answer, at most ${Math.round(peak)} MB`)
  assert.ok(peak < LIMIT_MB, `${peak} MB`)

  // The peer did send: more than is read of each, and nobody waited for the rest.
  assert.equal(answered.length, 3 * 48)
  for (const { bytesWritten } of answered)
    assert.ok(bytesWritten > READ_BYTES && bytesWritten < BODY_BYTES, `${bytesWritten} bytes were sent`)
  assert.deepEqual(
    await db.query(
      `select split_part(key, '-', 1) as kind, http_status, outcome, reason, bytes_in >= $1 as full, count(*)::int as n
       from outbox.attempts group by 1, 2, 3, 4, 5 order by 1`,
      READ_BYTES,
    ),
    [
      ...['body', 'bomb'].map((kind) => ({
        kind,
        http_status: 200,
        outcome: 'delivered',
        reason: 'response_truncated',
        full: true,
        n: 48,
      })),
      { kind: 'drip', http_status: 200, outcome: 'delivered', reason: 'response_truncated', full: false, n: 16 },
      { kind: 'error', http_status: 500, outcome: 'unknown', reason: 'http_500', full: true, n: 48 },
    ],
  )
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { enqueue, keysOf, putClinic } from '../support/clinic.ts'
import { testDatabase } from '../support/database.ts'
import { silence, startPeer, status } from '../support/peer.ts'
import { QUICK, startWorker } from '../support/process.ts'
import { until } from '../support/until.ts'

const db = await testDatabase()
const peer = await startPeer()

// case C05
test('what a killed poller had in flight is sent again by another one, with the same key and the same bytes', async () => {
  await putClinic(db, peer.url, { concurrency: 512 })
  const keys = keysOf('capture', 20)
  await enqueue(db, keys, { payload: '{"amount": 1.50,  "id": 9007199254740993}' })
  peer.answer(silence)
  const killed = await startWorker(db, { ...QUICK, name: 'killed' })
  await until('20 requests are in flight', () => peer.received.length === 20)
  killed.kill('SIGKILL')
  assert.equal((await killed.ended).signal, 'SIGKILL')
  peer.answer(status(200))
  const other = await startWorker(db, { ...QUICK, name: 'other' })
  await until('all are delivered', async () => {
    const [row] = await db.query<{ n: number }>(
      `select count(*)::int as n from outbox.deliveries where state = 'delivered'`,
    )
    return row?.n === 20
  })
  for (const key of keys) {
    const requests = peer.received.filter((request) => request.key === key)
    assert.deepEqual(
      requests.map(({ number, body }) => [number, body.toString()]),
      [1, 2].map((number) => [number, '{"amount": 1.50,  "id": 9007199254740993}']),
    )
    assert.deepEqual(
      await db.query(
        'select number, outcome, verdict, reason, request_sent, poller from outbox.attempts where key = $1 order by number',
        key,
      ),
      [
        {
          number: 1,
          outcome: 'unknown',
          verdict: 'retry',
          reason: 'worker_lost',
          request_sent: null,
          poller: 'killed',
        },
        { number: 2, outcome: 'delivered', verdict: 'delivered', reason: null, request_sent: true, poller: 'other' },
      ],
    )
  }
  const lease = Number(QUICK['lease-ms'])
  const [times] = await db.query<{ apart: number; waited: number }>(
    `select 1000 * min(extract(epoch from b.started_at - a.started_at))::float8 as apart,
            1000 * max(extract(epoch from b.started_at - greatest(p.started_at, a.started_at + $1 * interval '1 ms')))::float8 as waited
     from outbox.attempts a join outbox.attempts b on b.key = a.key and a.number = 1 and b.number = 2
     join outbox.poller p on p.name = 'other'`,
    lease,
  )
  assert.ok((times?.apart ?? 0) >= lease, `sent again after ${times?.apart} ms, before its lease had run out`)
  // From when it could be taken back: one sweep, and three seconds for a machine that is busy.
  assert.ok((times?.waited ?? 0) < Number(QUICK['sweep-interval-ms']) + 3_000, `waited ${times?.waited} ms`)
  other.kill('SIGTERM')
  assert.equal((await other.ended).code, 0)
})

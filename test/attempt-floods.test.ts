// Bytes without end that never become an answer: they end their own attempt, at once, and cost the others nothing.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { enqueue, keysOf, putClinic, testPoller } from './support/clinic.ts'
import { testDatabase } from './support/database.ts'
import { startFaultPeer } from './support/fault-peer.ts'
import { type Fault, flood } from './support/faults.ts'
import { until } from './support/until.ts'

const db = await testDatabase()

const CHUNKED = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n'
const LOST = { outcome: 'unknown', verdict: 'retry' }
const TRUNCATED = { outcome: 'delivered', verdict: 'delivered', reason: 'response_truncated' }

const floods: readonly (readonly [name: string, flood: Fault, finding: object])[] = [
  ['announcements', flood('', 'HTTP/1.1 103 Early Hints\r\n\r\n'), { ...LOST, reason: 'protocol_error' }],
  ['reason phrase', flood('HTTP/1.1 200 ', 'A'), { ...LOST, reason: 'request_malformed' }],
  ['blank lines', flood('', '\r\n'), { ...LOST, reason: 'request_malformed' }],
  ['chunk extension', flood(`${CHUNKED}1`, ';a'), TRUNCATED],
  ['tiny chunks with large extensions', flood(CHUNKED, `1;${'a'.repeat(16_000)}\r\nx\r\n`), TRUNCATED],
]

for (const tls of [undefined, 'valid'] as const)
  for (const [name, fault, finding] of floods)
    test(`${tls === undefined ? 'http' : 'https'}: ${name} without end: the attempt ends long before its deadline`, async () => {
      const peer = await startFaultPeer(tls === undefined ? {} : { tls })
      const endpoint = `${name.replaceAll(' ', '-')}-${tls ?? 'plain'}`
      await putClinic(db, peer.url, { name: endpoint, timeoutMs: 4_000, concurrency: 4, partitions: 1 })
      peer.standing(fault)
      await enqueue(db, keysOf(endpoint, 4), { endpoint })
      await testPoller(db).runOnce()
      const rows = await db.query<{ ms: number }>(
        'select outcome, verdict, reason, took_ms as ms from outbox.attempts where endpoint = $1',
        endpoint,
      )
      for (const { ms, ...found } of rows) assert.deepEqual([found, ms < 2_000], [finding, true], `${ms} ms`)
      assert.equal(rows.length, 4)
      await until('the connections are gone', () => peer.open === 0)
      assert.ok(peer.bytesSent < 100_000_000, `${peer.bytesSent} bytes`)
    })

test('a kept connection that pours without being asked is taken down, though nothing is in flight', async () => {
  const peer = await startFaultPeer()
  const head = 'HTTP/1.1 200 OK\r\ncontent-length: 0\r\nkeep-alive: timeout=600\r\n\r\n'
  peer.standing(flood(head, '\r\n'))
  await putClinic(db, peer.url, { name: 'idle' })
  await enqueue(db, ['idle'], { endpoint: 'idle' })
  const poller = testPoller(db)
  assert.equal((await poller.runOnce()).delivered, 1)
  await until('the connection is gone', () => peer.seen.length === 1 && peer.open === 0)
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createPoller, outbox, putEndpoint } from '../src/index.ts'
import { enqueue, putClinic, testPoller } from './support/clinic.ts'
import { testDatabase } from './support/database.ts'
import { startFaultPeer } from './support/fault-peer.ts'
import { startPeer, status } from './support/peer.ts'
import { testSecret } from './support/secret.ts'

const db = await testDatabase()
const peer = await startPeer()
const AUTHORIZATION = 'OUTLEDGER_TEST_AUTHORIZATION'

/** One delivery of a fresh endpoint, one round of a poller, and what the ledger then says of it. */
async function attemptOnce(key: string, authorization?: string) {
  process.env[AUTHORIZATION] = 'Bearer good'
  await putEndpoint(db.sql, {
    name: key,
    url: peer.url,
    secret: testSecret(),
    allowInsecure: true,
    allowPrivate: true,
    ...(authorization === undefined ? {} : { authorization: `env:${AUTHORIZATION}` }),
  })
  if (authorization !== undefined) process.env[AUTHORIZATION] = authorization
  await outbox.enqueueStandalone(db.sql, { key, endpoint: key, type: 'edge', payload: {} })
  const poller = createPoller({ databaseUrl: db.url })
  await poller.runOnce()
  await poller.stop()
  const [row] = await db.query(
    `select d.state, d.terminal_reason, a.outcome, a.reason, a.http_status, a.request_sent, a.retry_after_ms, a.replayed
     from outbox.deliveries d left join outbox.attempts a using (key) where d.key = $1`,
    key,
  )
  return row
}

test('a header value with a line break is never sent and ends the delivery', async () => {
  const before = peer.received.length
  const row = await attemptOnce('line-break', 'Bearer a\r\nx-injected: b')
  assert.deepEqual(row, {
    ...{ state: 'dead', terminal_reason: 'bad_config', outcome: 'not_applied', reason: 'bad_config' },
    ...{ http_status: null, request_sent: false, retry_after_ms: null, replayed: false },
  })
  assert.equal(peer.received.length, before)
})

// case C55
test('a Retry-After of thirty digits is recorded and does not keep the outcome from being settled', async () => {
  peer.next(status(503, { 'retry-after': '9'.repeat(30) }))
  const row = await attemptOnce('thirty-digits')
  assert.equal(row?.state, 'waiting')
  assert.equal(row?.http_status, 503)
  assert.equal(row?.retry_after_ms, String(Number.MAX_SAFE_INTEGER))
})

test('blanks around the value of a response header are no part of it', async () => {
  peer.next((response) =>
    response.socket?.end('HTTP/1.1 429 Slow\r\nretry-after:  120 \t\r\ncontent-length: 0\r\n\r\n'),
  )
  assert.equal((await attemptOnce('blanks'))?.retry_after_ms, '120000')
  peer.next((response) =>
    response.socket?.end('HTTP/1.1 200 OK\r\nidempotent-replayed: true \r\ncontent-length: 0\r\n\r\n'),
  )
  assert.equal((await attemptOnce('replayed-blank'))?.reason, 'replayed')
})

test('two endpoints of one origin, one of which may not reach it: each attempt has the phase of its own connection', async () => {
  const { url } = await startFaultPeer({ tls: 'self-signed' })
  for (const name of ['public-only', 'private-too']) {
    await putClinic(db, url, { name })
    await enqueue(db, [name], { endpoint: name })
  }
  await db.query(`update outbox.endpoint set allow_private = false, version = version + 1 where name = 'public-only'`)
  const poller = testPoller(db)
  await poller.runOnce()
  const rows = await db.query(
    `select key, phase from outbox.attempts where key in ('public-only', 'private-too') order by key`,
  )
  assert.deepEqual(rows, [
    { key: 'private-too', phase: 'tls' },
    { key: 'public-only', phase: 'prepare' },
  ])
})

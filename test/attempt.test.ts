// One attempt against real sockets: what the other side sees, and when it sees it again.
import assert from 'node:assert/strict'
import { beforeEach, test } from 'node:test'
import { Webhook } from 'standardwebhooks'
import { enqueue, forgive, putClinic, testPoller } from './support/clinic.ts'
import { testDatabase } from './support/database.ts'
import { startPeer, status } from './support/peer.ts'
import { testSecretValue } from './support/secret.ts'

const db = await testDatabase()
const peer = await startPeer()
const poller = testPoller(db)
beforeEach(() => forgive(db))
process.env.OUTLEDGER_TEST_TOKEN = 'Bearer token-of-the-clinic'

const requestsFor = (key: string) => peer.received.filter((request) => request.key === key)

test('a request carries these headers and no others, and the stored bytes as its body', async () => {
  await putClinic(db, peer.url, { authorization: 'env:OUTLEDGER_TEST_TOKEN', headers: '{"x-tenant": "north"}' })
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
  const payload = '{"b": 1e2, "a": 9007199254740993}'
  await enqueue(db, ['evt_1:clinic'], { payload, correlationId: 'corr-1', traceparent })
  await poller.runOnce()
  const [request] = requestsFor('evt_1:clinic')
  assert.ok(request)
  const { 'webhook-timestamp': timestamp, 'webhook-signature': signature, host, connection, ...rest } = request.headers
  assert.deepEqual(rest, {
    'content-type': 'application/json',
    'content-length': String(payload.length),
    'accept-encoding': 'identity',
    'user-agent': 'outledger/0.1.0',
    'idempotency-key': 'evt_1:clinic',
    'webhook-id': 'evt_1:clinic',
    'outledger-type': 'eligibility.changed',
    'outledger-attempt': '1',
    'outledger-correlation-id': 'corr-1',
    traceparent,
    authorization: 'Bearer token-of-the-clinic',
    'x-tenant': 'north',
  })
  assert.equal(host, new URL(peer.url).host)
  assert.equal(connection, 'keep-alive')
  assert.match(timestamp ?? '', /^\d{10}$/)
  assert.match(signature ?? '', /^v1,[A-Za-z0-9+/]{43}=$/)
  assert.equal(request.body.toString(), payload)
  new Webhook(testSecretValue).verify(request.body, request.headers)
  await putClinic(db, peer.url, { authorization: null, headers: null })
})

test('what the app did not give is not sent', async () => {
  await enqueue(db, ['bare'])
  await poller.runOnce()
  const [request] = requestsFor('bare')
  assert.ok(request)
  for (const name of ['outledger-correlation-id', 'traceparent', 'authorization', 'x-tenant'])
    assert.equal(name in request.headers, false, name)
})

test('a connection is kept for the next request', async () => {
  const before = peer.connections
  for (const key of ['kept-1', 'kept-2', 'kept-3']) {
    await enqueue(db, [key])
    await poller.runOnce()
  }
  assert.equal(requestsFor('kept-3').length, 1)
  assert.equal(peer.connections, before)
})

const date = 'Sun, 06 Nov 1994 08:49:37 GMT'
for (const [code, header, seconds] of [
  [503, '600', 600],
  [429, '600', 600],
  [429, 'Sun, 06 Nov 1994 08:59:37 GMT', 600],
  [503, '5', 300],
  // case C55
  [503, '-5', 300],
  [503, '1.5', 300],
  [503, 'never', 300],
  [503, '5, 60', 300],
  [503, '315360000', 86_400],
] as const) {
  test(`${code} with Retry-After: ${header} waits ${seconds} s, by the row, and at most a tenth more`, async () => {
    const key = `retry-after-${code}-${header.replace(/[^a-z0-9]+/gi, '_')}`
    peer.next(status(code, { 'retry-after': header, date }))
    await enqueue(db, [key])
    await poller.runOnce()
    const [waits] = await db.query<{ s: number }>(
      `select extract(epoch from d.next_attempt_at - a.finished_at)::float8 as s
       from outbox.deliveries d join outbox.attempts a using (key) where d.key = $1`,
      key,
    )
    const wait = waits?.s ?? 0
    // The retry is counted from the settle, which comes a moment after the end of the request.
    assert.ok(wait >= seconds && wait <= seconds * 1.1 + 5, `waits ${wait} s`)
  })
}

// One attempt against real sockets: what the other side sees, and what the ledger keeps of each way it can go.
import assert from 'node:assert/strict'
import { after, beforeEach, test } from 'node:test'
import { Webhook } from 'standardwebhooks'
import { enqueue, forgive, putClinic, testPoller } from './support/clinic.ts'
import { testDatabase } from './support/database.ts'
import { type Answer, raw, reset, silence, startPeer, status } from './support/peer.ts'
import { testSecretValue } from './support/secret.ts'

const db = await testDatabase()
const peer = await startPeer()
const elsewhere = await startPeer()
const poller = testPoller(db)
beforeEach(() => forgive(db))
process.env.OUTLEDGER_TEST_TOKEN = 'Bearer token-of-the-clinic'
after(() => assert.equal(elsewhere.connections, 0, 'a redirect was followed'))

const row = async (key: string) => {
  const [only, ...more] = await db.query<Record<string, unknown>>('select * from outbox.attempts where key = $1', key)
  assert.equal(more.length, 0, 'one attempt, one row')
  return only ?? {}
}
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

const drip: Answer = (response) => {
  response.writeHead(200).write('a')
  const timer = setInterval(() => response.write('b'), 50)
  response.once('close', () => clearInterval(timer))
}
const lotsOf = (bytes: number) => raw(`HTTP/1.1 200 OK\r\ncontent-length: ${bytes}\r\n\r\n${'x'.repeat(bytes)}`)
/** Only these are waited for until the deadline. */
const endless = new Set([drip, silence])
const to = (code: number) => status(code, { location: elsewhere.url })

const answered: [why: string, answer: Answer, wanted: [outcome: string, verdict: string, reason: string | null]][] = [
  ['204', status(204), ['delivered', 'delivered', null]],
  ['200 replayed', status(200, { 'idempotent-replayed': 'true' }), ['delivered', 'delivered', 'replayed']],
  // case C50
  [
    '200 cut short',
    raw('HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhello'),
    ['delivered', 'delivered', 'response_truncated'],
  ],
  ['200 that never ends', drip, ['delivered', 'delivered', 'response_truncated']],
  ['200 with 10 MB', lotsOf(10_000_000), ['delivered', 'delivered', 'response_truncated']],
  // case C51
  ['301', to(301), ['not_applied', 'dead', 'moved_permanently']],
  ['302', to(302), ['unknown', 'retry', 'redirect_not_followed']],
  ['307', to(307), ['unknown', 'retry', 'redirect_not_followed']],
  ['308', to(308), ['not_applied', 'dead', 'moved_permanently']],
  ['401', status(401), ['rejected', 'dead', 'auth_rejected']],
  ['404', status(404), ['rejected', 'dead', 'http_404']],
  ['408', status(408), ['not_applied', 'retry', 'http_408']],
  ['409', status(409), ['unknown', 'retry', 'duplicate_in_progress']],
  ['410', status(410), ['rejected', 'dead', 'gone']],
  ['421', status(421), ['not_applied', 'retry', 'http_421']],
  ['425', status(425), ['not_applied', 'retry', 'http_425']],
  ['429', status(429), ['not_applied', 'retry', 'http_429']],
  ['500', status(500), ['unknown', 'retry', 'http_500']],
  ['503', status(503), ['unknown', 'retry', 'http_503']],
  ['503 cut short', raw('HTTP/1.1 503 No\r\ncontent-length: 9\r\n\r\nno'), ['unknown', 'retry', 'http_503']],
]

for (const [why, answer, [outcome, verdict, reason]] of answered) {
  test(`${why}: the head is the answer`, async () => {
    const key = why.replace(/[^a-z0-9]+/gi, '-')
    await putClinic(db, peer.url, { timeoutMs: endless.has(answer) ? 400 : 10_000 })
    peer.next(answer)
    await enqueue(db, [key])
    await poller.runOnce()
    const found = await row(key)
    assert.deepEqual(
      [found.outcome, found.verdict, found.reason, found.http_status, found.request_sent],
      [outcome, verdict, reason, Number(why.slice(0, 3)), true],
    )
    assert.equal(requestsFor(key).length, 1)
    assert.ok(Number(found.bytes_in) <= 16_384 + 65_536, `${found.bytes_in} bytes were read`)
  })
}

const unanswered: [why: string, answer: Answer, reason: string][] = [
  // case C52, on a connection that has been used before
  ['a reset after the request was read', reset, 'request_ECONNRESET'],
  ['the end of the connection after the request was read', raw(''), 'request_closed'],
  ['silence until the deadline', silence, 'request_timeout'],
  ['half a head', raw('HTTP/1.1 200 OK\r\nx: '), 'request_closed'],
  ['something that is not HTTP', raw('ICY 200 OK\r\n\r\n'), 'request_HTTPParserError'],
  [
    'an upgrade that nobody asked for',
    raw('HTTP/1.1 101 Switching\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n'),
    'protocol_error',
  ],
  ['hints, and no answer after them', raw('HTTP/1.1 103 Early Hints\r\n\r\n'), 'protocol_error'],
]

for (const [why, answer, reason] of unanswered) {
  test(`${why}: unknown, and sent again by schedule`, async () => {
    const key = why.replace(/[^a-z0-9]+/gi, '-')
    await putClinic(db, peer.url, { timeoutMs: endless.has(answer) ? 400 : 10_000 })
    await enqueue(db, [`before-${key}`])
    await poller.runOnce()
    peer.next(answer)
    await enqueue(db, [key])
    await poller.runOnce()
    const { outcome, verdict, http_status, request_sent, phase, ...found } = await row(key)
    assert.deepEqual(
      { outcome, verdict, http_status, request_sent, phase, reason: found.reason },
      { outcome: 'unknown', verdict: 'retry', http_status: null, request_sent: true, phase: 'request', reason },
    )
    assert.equal(requestsFor(key).length, 1)
    assert.equal((await poller.runOnce()).claimed, 0)
  })
}

// What one request leaves to the next: kept connections, the key, the body, the signature, and how long the pause is.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pino } from 'pino'
import { Webhook } from 'standardwebhooks'
import { logTo } from '../src/index.ts'
import { enqueue, keysOf, putClinic, testPoller } from './support/clinic.ts'
import { testDatabase } from './support/database.ts'
import { type Seen, startFaultPeer } from './support/fault-peer.ts'
import { answer, bodyOf, type Fault, fin, ok, raw, reset } from './support/faults.ts'
import { testSecretValue } from './support/secret.ts'
import { until } from './support/until.ts'

const db = await testDatabase()
const http = await startFaultPeer()
const https = await startFaultPeer({ tls: 'valid' })
const poller = testPoller(db)

const attempts = (key: string) =>
  db.query('select number, outcome, verdict, reason from outbox.attempts where key = $1 order by number', key)
const headersOf = ({ head }: Seen) =>
  Object.fromEntries(
    [...head.matchAll(/^([\w-]+): (.*)\r$/gm)].map(([, name = '', value]) => [name.toLowerCase(), value]),
  ) as Record<string, string>

/** Sent one after the other, each on the connection that the one before it has left. */
async function inTurn(name: string, peer: typeof http, ...faults: Fault[]) {
  await putClinic(db, peer.url, { name, retryDelayMs: 300_000 })
  const keys = keysOf(name, faults.length)
  for (const [i, key] of keys.entries()) {
    peer.meet(key, faults[i] as Fault)
    await enqueue(db, [key], { endpoint: name })
    await poller.runOnce()
  }
  return keys
}

for (const [scheme, peer] of [
  ['http', http],
  ['https', https],
] as const) {
  // case C52
  for (const [what, fault, reason] of [
    ['reset', reset, 'request_ECONNRESET'],
    ['closed', fin, 'request_closed'],
  ] as const)
    test(`${scheme}: a kept connection that is ${what} after the request was read: one attempt, unknown, no second request`, async () => {
      const [, key = ''] = await inTurn(`${scheme}-${what}`, peer, ok, fault)
      assert.deepEqual(await attempts(key), [{ number: 1, outcome: 'unknown', verdict: 'retry', reason }])
      const [one, ...more] = peer.of(key)
      assert.equal(more.length, 0)
      assert.ok((one?.nth ?? 0) > 1 && one?.complete, 'the connection was kept')
      assert.equal((await poller.runOnce()).claimed, 0, 'the next try is the schedule’s')
    })

  test(`${scheme}: a kept connection that was closed meanwhile costs no attempt`, async () => {
    const closing = raw('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n')
    const [first = '', second = ''] = await inTurn(`${scheme}-gone`, peer, closing, ok)
    for (const key of [first, second])
      assert.deepEqual(
        (await attempts(key)).map(({ outcome }) => outcome),
        ['delivered'],
      )
    assert.notEqual(peer.of(first)[0]?.connection, peer.of(second)[0]?.connection)
  })

  test(`${scheme}: a second answer that nobody asked for is not the next request's`, async () => {
    const twice = 'HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n'.repeat(2)
    const [, second = ''] = await inTurn(`${scheme}-twice`, peer, raw(twice, { open: true }), answer(410))
    assert.deepEqual(await attempts(second), [{ number: 1, outcome: 'rejected', verdict: 'dead', reason: 'gone' }])
    assert.equal(peer.of(second).length, 1)
  })

  test(`${scheme}: after a 421 the next attempt has a connection of its own, whatever others are kept`, async () => {
    const name = `${scheme}-421`
    await putClinic(db, peer.url, { name, retryDelayMs: 0 })
    // Other connections that are kept may lead to the same place.
    const warm = keysOf(`${name}-warm`, 3)
    for (const key of warm) peer.meet(key, answer(200))
    await enqueue(db, warm, { endpoint: name })
    const sent = () => warm.flatMap((key) => peer.of(key))
    await until('some connections are kept', async () => (await poller.runOnce()) && sent().length === 3)
    peer.meet(name, answer(421), answer(200))
    await enqueue(db, [name], { endpoint: name })
    await until('both attempts', async () => (await poller.runOnce()) && (await attempts(name)).length === 2)
    const [first, second] = peer.of(name)
    assert.notEqual(first?.connection, second?.connection)
    assert.equal(second?.nth, 1)
  })
}

// cases C53 and C54
test('six minutes later key and body are the same bytes, timestamp and signature those of the attempt', async () => {
  const name = 'again'
  await putClinic(db, http.url, { name, retryDelayMs: 0 })
  http.meet(name, answer(503), ok)
  await enqueue(db, [name], { endpoint: name, payload: '{"b": 1e2, "ü": "\\u0000"}' })
  await db.query(
    `update outbox.delivery set discovered_at = discovered_at - interval '6 minutes' where key = '${name}'`,
  )
  const clock = async () =>
    Number((await db.query('select floor(extract(epoch from clock_timestamp()))::text as s'))[0]?.s)
  const before = await clock()
  await poller.runOnce()
  await until('the clock is another second', async () => (await clock()) > before + 1)
  await until('the second attempt', async () => (await poller.runOnce()) && http.of(name).length >= 2)
  const [first, second] = http.of(name) as [Seen, Seen]
  const [a, b] = [headersOf(first), headersOf(second)]
  for (const same of ['idempotency-key', 'webhook-id']) assert.deepEqual([a[same], b[same]], [name, name])
  assert.equal(first.body.compare(second.body), 0)
  assert.deepEqual([a['outledger-attempt'], b['outledger-attempt']], ['1', '2'])
  for (const differs of ['webhook-timestamp', 'webhook-signature']) assert.notEqual(a[differs], b[differs])
  const after = await clock()
  for (const { body, headers } of [
    { body: first.body, headers: a },
    { body: second.body, headers: b },
  ]) {
    const at = Number(headers['webhook-timestamp'])
    assert.ok(at >= before && at <= after, 'signed when it was sent, not when it was enqueued')
    new Webhook(testSecretValue).verify(body, headers)
  }
})

test('keyFormat sf-string quotes the key in its header, and nowhere else', async () => {
  const name = 'quoted'
  await putClinic(db, http.url, { name, keyFormat: 'sf-string' })
  await enqueue(db, ['evt_1:quoted'], { endpoint: name })
  await poller.runOnce()
  const one = http.of('evt_1:quoted')[0] as Seen
  assert.match(one.head, /^idempotency-key: "evt_1:quoted"\r$/m)
  const headers = headersOf(one)
  assert.equal(headers['webhook-id'], 'evt_1:quoted')
  new Webhook(testSecretValue).verify(one.body, headers)
})

// case C56
test('a 429 with Retry-After: 60 is not tried earlier, though the own pause is a second; nor is anything else there', async () => {
  const name = 'busy'
  await putClinic(db, http.url, { name, retryDelayMs: 1_000 })
  http.meet('busy-1', answer(429, { 'retry-after': '60' }))
  await enqueue(db, ['busy-1'], { endpoint: name })
  await poller.runOnce()
  const [waits] = await db.query<{ s: number }>(
    `select extract(epoch from d.next_attempt_at - a.finished_at)::float8 as s
     from outbox.deliveries d join outbox.attempts a using (key) where d.key = 'busy-1'`,
  )
  assert.ok((waits?.s ?? 0) >= 60, `${waits?.s} s`)
  await db.age('busy-1', '59 seconds')
  await enqueue(db, ['busy-2'], { endpoint: name })
  assert.equal((await poller.runOnce()).claimed, 0)
  assert.equal(http.of('busy-2').length, 0)
})

test('of a body of 500 MB no more leaves the peer than fits into the buffers in between', async () => {
  const endless = await startFaultPeer()
  await inTurn('endless', endless, bodyOf(200, 500_000_000), bodyOf(500, 500_000_000))
  assert.equal(endless.seen.length, 2)
  await until('both connections are gone', () => endless.open === 0)
  assert.ok(endless.bytesSent < 50_000_000, `${endless.bytesSent} bytes`)
})

test('a Retry-After that is capped, and TLS that fails, are warned of: at once, and once a second', async () => {
  const lines: Record<string, unknown>[] = []
  logTo(poller, pino({ level: 'warn' }, { write: (line: string) => lines.push(JSON.parse(line)) }))
  const capped: unknown[] = []
  poller.on('attempt', ({ key, retryAfterCapped }) => retryAfterCapped && capped.push(key))
  const expired = await startFaultPeer({ tls: 'expired' })
  await putClinic(db, expired.url, { name: 'expired', concurrency: 10 })
  await enqueue(db, keysOf('expired', 10), { endpoint: 'expired' })
  for (const [name, header] of [
    ['day', '86400'],
    ['days', '86401'],
  ] as const) {
    await putClinic(db, http.url, { name })
    http.meet(name, answer(503, { 'retry-after': header }))
    await enqueue(db, [name], { endpoint: name })
  }
  await until('all were tried', async () => {
    await poller.runOnce()
    const [row] = await db.query<{ n: number }>(
      `select count(*)::int as n from outbox.attempts where endpoint in ('expired', 'day', 'days')`,
    )
    return row?.n === 12
  })
  assert.deepEqual(capped, ['days'])
  const ofTls = lines.filter(({ reason }) => reason === 'tls_CERT_HAS_EXPIRED')
  assert.ok(ofTls.length >= 1 && ofTls.length < 10, `${ofTls.length} lines`)
  assert.equal(ofTls[0]?.endpoint, 'expired')
  assert.equal(lines.filter(({ reason }) => reason === 'retry_after_capped').length, 1)
})

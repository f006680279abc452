// `endpoint test`: one signed request that is no delivery, and what each phase of it took.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Webhook } from 'standardwebhooks'
import { pauseEndpoint, putEndpoint, rotateSecret, testEndpoint } from '../src/index.ts'
import { deliverOnce, enqueue, putClinic } from './support/clinic.ts'
import { testDatabase } from './support/database.ts'
import { reset, silence, startPeer, status } from './support/peer.ts'
import { testSecret, testSecretValue } from './support/secret.ts'

const db = await testDatabase()
const peer = await startPeer()
process.env.OUTLEDGER_TEST_TOKEN = 'Bearer token-of-the-clinic'
process.env.OUTLEDGER_TEST_NEW = `whsec_${Buffer.alloc(32, 2).toString('base64')}`

const ledger = () => db.query('select count(*)::int as n from outbox.attempts')

test('a ping carries the headers of a delivery, its own type, and every signature', async () => {
  await putClinic(db, peer.url, { authorization: 'env:OUTLEDGER_TEST_TOKEN', headers: '{"x-tenant": "north"}' })
  await rotateSecret(db.sql, 'clinic', { secret: 'env:OUTLEDGER_TEST_NEW' })
  const ping = await testEndpoint(db.sql, 'clinic', { by: 'ann', why: 'new receiver' })
  await enqueue(db, ['real'])
  await deliverOnce(db)
  const [pinged, delivered] = peer.received
  assert.ok(pinged && delivered)
  assert.deepEqual(Object.keys(pinged.headers), Object.keys(delivered.headers))
  const own = [
    'content-length',
    'idempotency-key',
    'webhook-id',
    'webhook-timestamp',
    'webhook-signature',
    'outledger-type',
  ]
  for (const [name, value] of Object.entries(delivered.headers))
    if (!own.includes(name)) assert.equal(pinged.headers[name], value, name)
  assert.match(ping.key, /^ping-[0-9a-f-]{36}$/)
  assert.deepEqual(
    ['idempotency-key', 'webhook-id', 'outledger-type'].map((name) => pinged.headers[name]),
    [ping.key, ping.key, 'outledger.ping'],
  )
  for (const secret of [testSecretValue, process.env.OUTLEDGER_TEST_NEW as string])
    new Webhook(secret).verify(pinged.body, pinged.headers)
  const body = JSON.parse(pinged.body.toString())
  assert.deepEqual([body.type, body.endpoint], ['outledger.ping', 'clinic'])
  const [clock] = await db.query(
    `select abs(extract(epoch from clock_timestamp() - $1::text::timestamptz)) < 60 as near`,
    body.at,
  )
  assert.deepEqual(clock, { near: true })
  assert.deepEqual(await ledger(), [{ n: 1 }], 'the ping is no delivery')

  const { phases, tookMs, ...rest } = ping
  assert.deepEqual(rest, {
    ...{ endpoint: 'clinic', key: ping.key, host: new URL(peer.url).host, status: 200, phase: 'done' },
    ...{ outcome: 'delivered', verdict: 'delivered', reason: null },
  })
  // An IP address over http: neither a name to look up nor TLS.
  assert.deepEqual(Object.keys(phases), ['connect', 'request', 'response'])
  for (const ms of Object.values(phases)) assert.ok(ms >= 0 && ms <= tookMs + 1, JSON.stringify(ping))
  const [operation] = await db.query(
    `select who, why, detail ->> 'key' as key, detail ->> 'outcome' as outcome, detail ->> 'status' as status
     from outbox.operation where verb = 'endpoint test' and subject = 'clinic'`,
  )
  assert.deepEqual(operation, { who: 'ann', why: 'new receiver', key: ping.key, outcome: 'delivered', status: '200' })
})

test('a name is looked up, and that is a phase of its own', async () => {
  const url = peer.url.replace('127.0.0.1', 'localhost')
  await putClinic(db, url, { name: 'named' })
  peer.next(status(503, { 'retry-after': '60' }))
  const { phases, outcome, verdict, reason } = await testEndpoint(db.sql, 'named')
  assert.deepEqual(Object.keys(phases), ['dns', 'connect', 'request', 'response'])
  assert.deepEqual([outcome, verdict, reason], ['unknown', 'retry', 'http_503'])
})

test('what a delivery would have made of it is said, however it ends', async () => {
  const answers = [
    [status(410), 410, 'rejected', 'dead', 'gone', 'done'],
    [reset, null, 'unknown', 'retry', 'request_ECONNRESET', 'request'],
    [silence, null, 'unknown', 'retry', 'request_timeout', 'request'],
  ] as const
  await putClinic(db, peer.url, { name: 'bad', timeoutMs: 200 })
  for (const [answer, http, ...wanted] of answers) {
    peer.next(answer)
    const ping = await testEndpoint(db.sql, 'bad')
    assert.deepEqual([ping.status, ping.outcome, ping.verdict, ping.reason, ping.phase], [http, ...wanted])
  }
  const [row] = await db.query(
    `select count(*)::int as n from outbox.operation where verb = 'endpoint test' and subject = 'bad'`,
  )
  assert.deepEqual(row, { n: 3 })
})

test('a ping goes only where a delivery may go, and to a paused endpoint too', async () => {
  const before = peer.connections
  await putClinic(db, peer.url, { name: 'private' })
  await db.query(`update outbox.endpoint set allow_private = false where name = 'private'`)
  const blocked = await testEndpoint(db.sql, 'private')
  assert.deepEqual([blocked.outcome, blocked.verdict, blocked.reason], ['not_applied', 'dead', 'blocked_address'])
  assert.deepEqual(blocked.phases, {})
  assert.equal(peer.connections, before)
  await putEndpoint(db.sql, { name: 'private', allowPrivate: true })
  await pauseEndpoint(db.sql, 'private', { why: 'not live yet' })
  assert.equal((await testEndpoint(db.sql, 'private')).outcome, 'delivered')
})

test('a ping whose secret means nothing here is not sent', async () => {
  const before = peer.received.length
  await putClinic(db, peer.url, { name: 'secretless' })
  await db.query(`update outbox.endpoint set secret_ref = 'env:OUTLEDGER_TEST_UNSET' where name = 'secretless'`)
  await assert.rejects(testEndpoint(db.sql, 'secretless'), /the variable is not set/)
  assert.equal(peer.received.length, before)
  testSecret()
})

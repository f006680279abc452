// The receiver of outledger/testing, asked by a poller and by strangers.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { Webhook } from 'standardwebhooks'
import { createPoller, outbox, putEndpoint } from '../src/index.ts'
import { drain, startReceiver } from '../src/testing.ts'
import { testDatabase } from './support/database.ts'

const db = await testDatabase()
const receiver = await startReceiver()
after(() => receiver.close())
const { resolveSecret } = receiver
await putEndpoint(db.sql, receiver.endpoint('clinic'), { resolve: resolveSecret })

const enqueue = (...keys: string[]) =>
  db.sql.begin(async (tx) => {
    const event = { endpoint: 'clinic', type: 'payment.captured', payload: { cents: 9_900 }, correlationId: 'corr-1' }
    for (const key of keys) await outbox.enqueue(tx, { ...event, key })
  })
const drained = async () => {
  const poller = createPoller({ databaseUrl: db.url, resolveSecret })
  return drain(poller).finally(() => poller.stop())
}
const retried = async () => {
  const poller = createPoller({ databaseUrl: db.url, resolveSecret })
  return drain(poller, { retries: true }).finally(() => poller.stop())
}
const last = () =>
  db.query(
    'select number, outcome, reason, http_status, replayed from outbox.attempts order by started_at desc limit 1',
  )

test('what a poller sends is verified and recorded', async () => {
  receiver.reset()
  await enqueue('capture-1842')
  await drained()
  assert.equal(receiver.requests.length, 1)
  const [request] = receiver.requests
  assert.ok(request)
  const { headers, body, ...rest } = request
  assert.deepEqual(rest, {
    ...{ key: 'capture-1842', type: 'payment.captured', attempt: 1, verified: true, payload: { cents: 9_900 } },
  })
  assert.equal(body.toString(), '{"cents":9900}')
  assert.equal(headers['outledger-correlation-id'], 'corr-1')
  assert.deepEqual(receiver.effects, ['capture-1842'])
})

test('an event whose answer was lost is sent again, recognised, and has one effect', async () => {
  receiver.reset()
  await enqueue('lost-1')
  receiver.answerOnce('lost')
  assert.equal((await drained()).retry, 1)
  assert.deepEqual(await last(), [
    { number: 1, outcome: 'unknown', reason: 'request_closed', http_status: null, replayed: false },
  ])
  assert.deepEqual(receiver.effects, ['lost-1'])
  assert.equal((await retried()).delivered, 1)
  assert.deepEqual(await last(), [
    { number: 2, outcome: 'delivered', reason: 'replayed', http_status: 200, replayed: true },
  ])
  assert.deepEqual(
    receiver.requests.map(({ attempt }) => attempt),
    [1, 2],
  )
  assert.deepEqual(receiver.effects, ['lost-1'])
})

test('answers follow the script, then the standing one; only what is taken is an effect', async () => {
  receiver.reset()
  receiver.answer(({ attempt }) =>
    attempt < 4 ? { status: 429, headers: { 'retry-after': '7' }, body: 'slowly' } : 201,
  )
  receiver.answerOnce(503, () => 500)
  await enqueue('scripted')
  assert.equal((await retried()).delivered, 1)
  assert.deepEqual(
    await db.query(
      'select number, http_status, retry_after_ms::int from outbox.attempts where key = $1 order by 1',
      'scripted',
    ),
    [
      { number: 1, http_status: 503, retry_after_ms: null },
      { number: 2, http_status: 500, retry_after_ms: null },
      { number: 3, http_status: 429, retry_after_ms: 7_000 },
      { number: 4, http_status: 201, retry_after_ms: null },
    ],
  )
  assert.deepEqual(receiver.effects, ['scripted'])
})

test('requests that are held wait until they are let go', async () => {
  receiver.reset()
  const letGo = receiver.hold()
  await enqueue('held-1', 'held-2')
  const ending = drained()
  await receiver.received(2)
  assert.deepEqual(await db.query(`select state from outbox.deliveries where key like 'held-%'`), [
    { state: 'leased' },
    { state: 'leased' },
  ])
  assert.deepEqual(receiver.effects, [])
  letGo()
  assert.equal((await ending).delivered, 2)
  assert.deepEqual([...receiver.effects].sort(), ['held-1', 'held-2'])
})

test('what is not signed with its secret is refused, recorded, and no effect', async () => {
  receiver.reset()
  const body = '{"a":1}'
  const sign = (secret: string, id = 'k-1') => {
    const at = new Date()
    const signature = new Webhook(secret).sign(id, at, body)
    return {
      'webhook-id': id,
      'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
      'webhook-signature': signature,
    }
  }
  const signed = sign(receiver.secret)
  const other = `whsec_${Buffer.alloc(32).toString('base64')}`
  const cases: [why: string, headers: Record<string, string>, body: string, status: number][] = [
    ['signed', signed, body, 200],
    [
      'by one of two secrets',
      { ...signed, 'webhook-signature': `${sign(other)['webhook-signature']} ${signed['webhook-signature']}` },
      body,
      200,
    ],
    ['another body', signed, '{"a":2}', 401],
    ['another secret', sign(other), body, 401],
    ['another time', { ...signed, 'webhook-timestamp': '1700000000' }, body, 401],
    ['a time that is no number', { ...signed, 'webhook-timestamp': `${signed['webhook-timestamp']}abc` }, body, 401],
    ['another key than was signed', { ...signed, 'idempotency-key': 'k-2' }, body, 401],
    ['another id than was signed', { ...signed, 'webhook-id': 'k-2', 'idempotency-key': 'k-2' }, body, 401],
    ['no signature', { 'webhook-id': 'k-1' }, body, 401],
  ]
  for (const [why, headers, sent, status] of cases) {
    const answer = await fetch(receiver.url, {
      method: 'POST',
      headers: { 'idempotency-key': 'k-1', ...headers },
      body: sent,
    })
    await answer.text()
    assert.equal(answer.status, status, why)
  }
  assert.deepEqual(
    receiver.requests.map(({ verified }) => verified),
    cases.map(([, , , status]) => status === 200),
  )
  assert.deepEqual(receiver.effects, ['k-1'])
})

test('two receivers share one resolver; each is gone with its block', async () => {
  let [url, reference] = ['', '']
  {
    await using second = await startReceiver()
    ;[url, reference] = [second.url, second.secretReference]
    await putEndpoint(db.sql, second.endpoint('ledger', { retryDelayMs: 0 }), { resolve: resolveSecret })
    await db.sql.begin((tx) => outbox.enqueue(tx, { key: 'for-ledger', endpoint: 'ledger', type: 't', payload: {} }))
    assert.equal((await drained()).delivered, 1)
    assert.deepEqual(second.effects, ['for-ledger'])
    assert.notEqual(second.secret, receiver.secret)
    second.hold()
    const open = fetch(url, { method: 'POST', body: '' })
    open.catch(() => {})
    await second.received(2)
  }
  await assert.rejects(fetch(url), /fetch failed/)
  await assert.rejects(async () => resolveSecret(reference), { code: 'secret_unresolvable' })
})

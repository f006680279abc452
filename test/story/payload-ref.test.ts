// An event by reference: loaded for each attempt, the same bytes on all of them, and no fault of the store is the receiver's.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import { Webhook } from 'standardwebhooks'
import type { LoadAbout, LoadPayload, Poller, PollerGiven, ReleasedEvent } from '../../src/index.ts'
import { enqueue, putClinic, testPoller } from '../support/clinic.ts'
import { testDatabase } from '../support/database.ts'
import { reset, silence, startPeer, status } from '../support/peer.ts'
import { testSecretValue } from '../support/secret.ts'

const db = await testDatabase()
const peer = await startPeer()
await putClinic(db, peer.url)

/** The app's store, and what was asked of it. */
const store = new Map<string, string | Uint8Array>()
const asked: { ref: string; about: LoadAbout }[] = []
const loadPayload: LoadPayload = async (ref, about) => {
  asked.push({ ref, about })
  const found = store.get(ref)
  if (found === undefined) throw Object.assign(new Error('patient 1842'), { code: 'ESTORE' })
  return found
}

let last: Poller | null = null
/** A poller that is the only one. */
const polling = async (given: Partial<PollerGiven> = {}) => {
  await last?.stop({ graceMs: 0 })
  const poller = testPoller(db, { loadPayload, ...given })
  last = poller
  const released: ReleasedEvent[] = []
  poller.on('released', (event) => released.push(event))
  return { poller, released }
}
const referred = (key: string, payloadRef: string, more = {}) =>
  enqueue(db, [key], { payload: undefined, payloadRef, ...more })

const story = async (key: string): Promise<Record<string, unknown> & { story: string[] }> => {
  const [delivery] = await db.query(
    `select state, terminal_reason as reason, certainty, attempts, encode(payload_sha256, 'hex') as sha256, payload_bytes as bytes
     from outbox.deliveries where key = $1`,
    key,
  )
  const attempts = await db.query<{ outcome: string; reason: string | null; sent: boolean }>(
    `select outcome, reason, request_sent as sent from outbox.attempts where key = $1 order by number`,
    key,
  )
  return {
    ...(delivery as Record<string, unknown>),
    story: attempts.map(({ outcome, reason, sent }) => `${outcome} ${reason} ${sent}`),
  }
}
const requests = (key: string) => peer.received.filter((one) => one.key === key)
const digest = (text: string | Uint8Array) => createHash('sha256').update(text).digest('hex')

// cases C53, C54
test('the same bytes are loaded, signed and sent on every attempt, and their digest stands in the ledger', async () => {
  const body = '{ "name": "Zoë 🩺", "id": 9007199254740993, "b": 1e2 }'
  store.set('s3://claims/1', Buffer.from(body))
  await referred('by-ref', 's3://claims/1')
  const { poller } = await polling()
  peer.next(status(503), reset)
  for (let number = 1; number <= 3; number++) {
    await poller.runOnce()
    const request = requests('by-ref')[number - 1]
    assert.ok(request)
    assert.equal(request.body.toString(), body)
    new Webhook(testSecretValue).verify(request.body, request.headers)
    if (number < 3) await db.age('by-ref', '6 minutes')
  }
  assert.deepEqual(await story('by-ref'), {
    ...{ state: 'delivered', reason: null, certainty: 'delivered', attempts: 3 },
    ...{ sha256: digest(body), bytes: Buffer.byteLength(body) },
    story: ['unknown http_503 true', 'unknown request_ECONNRESET true', 'delivered null true'],
  })
  assert.deepEqual(
    asked.map(({ ref, about: { signal, ...about } }) => ({ ref, ...about, aborted: signal.aborted })),
    [1, 2, 3].map((number) => ({
      ...{ ref: 's3://claims/1', key: 'by-ref', type: 'eligibility.changed', endpoint: 'clinic', number },
      aborted: false,
    })),
  )
})

test('what has changed since it was pinned is not sent: dead, and unknown if it may have been applied before', async () => {
  const { poller } = await polling()
  for (const [key, first, certainty] of [
    ['changed-unknown', reset, 'unknown'],
    ['changed-refused', status(429), 'not_applied'],
  ] as const) {
    store.set(key, '{"v":1}')
    await referred(key, key)
    peer.next(first)
    await poller.runOnce()
    store.set(key, '{"v":2}')
    await db.query(`update outbox.endpoint set backoff_until = null`)
    await db.age(key, '6 minutes')
    assert.equal((await poller.runOnce()).dead, 1)
    const { story: attempts, ...rest } = await story(key)
    assert.deepEqual(rest, {
      ...{ state: 'dead', reason: 'payload_changed', certainty, attempts: 2, sha256: digest('{"v":1}'), bytes: 7 },
    })
    assert.equal(attempts[1], 'not_applied payload_changed false')
    assert.equal(requests(key).length, 1)
  }
})

test('it is pinned before anything is sent: another poller that finds something else sends nothing', async () => {
  store.set('raced', '{"v":1}')
  await referred('raced', 'raced')
  let seen: unknown
  peer.next(async (response) => {
    seen = (await story('raced')).sha256
    response.writeHead(503).end()
  })
  await (await polling()).poller.runOnce()
  assert.equal(seen, digest('{"v":1}'))
  await db.age('raced', '6 minutes')
  await (await polling({ loadPayload: () => '{"v":2}' })).poller.runOnce()
  assert.equal((await story('raced')).reason, 'payload_changed')
  assert.equal(requests('raced').length, 1)
})

test('a store that is down charges nothing and pauses 1 s, 2 s, 4 s; when it is back the event goes out', async () => {
  await referred('down', 's3://down?signature=secret')
  const { poller, released } = await polling()
  for (let round = 0; round < 3; round++) {
    assert.equal((await poller.runOnce()).released, 1)
    await db.age('down', '1 minute')
  }
  const problem = 'payloadRef "s3://down?…": loadPayload threw ESTORE'
  assert.deepEqual(
    released,
    [1_000, 2_000, 4_000].map((delayMs) => ({
      ...{ count: 1, reason: 'payload_unavailable', delayMs, endpoint: 'clinic', class: 'default', problem },
    })),
  )
  const nothing = { reason: null, certainty: 'not_attempted', attempts: 0, sha256: null, bytes: null, story: [] }
  assert.deepEqual(await story('down'), { state: 'waiting', ...nothing })
  store.set('s3://down?signature=secret', '[]')
  await poller.runOnce()
  assert.deepEqual((await story('down')).story, ['delivered null true'])
})

const faults: readonly (readonly [why: string, given: Partial<PollerGiven>, problem: RegExp])[] = [
  [
    'no loader',
    { loadPayload: undefined },
    /this poller has no loadPayload; pass it to createPoller, or --load-payload/,
  ],
  ['a loader that throws at once', { loadPayload: () => assert.fail('patient') }, /threw ERR_ASSERTION$/],
  ['a loader that returns nothing', { loadPayload: (() => undefined) as never }, /returned nothing$/],
  ['a loader that returns no JSON', { loadPayload: () => 'patient' }, /returned what is no JSON object or array/],
]
for (const [why, given, problem] of faults)
  test(`${why} leaves the delivery uncharged, and says what is wrong`, async () => {
    const key = `fault-${why.replaceAll(' ', '-')}`
    await referred(key, key)
    const { poller, released } = await polling(given)
    assert.equal((await poller.runOnce()).released, 1)
    assert.match(released[0]?.problem ?? '', problem)
    assert.ok(!JSON.stringify(released).includes('patient'))
    assert.deepEqual([(await story(key)).attempts, requests(key).length], [0, 0])
    store.set(key, '[]')
    await db.age(key, '2 seconds')
    assert.equal((await (await polling()).poller.runOnce()).delivered, 1)
  })

test('an endpoint that ends its deliveries unsent asks for no payload', async () => {
  await putClinic(db, peer.url, { name: 'passed', keyWindowMs: 60_000, horizonMs: 60_000 })
  store.set('passed', '[]')
  await referred('passed', 'passed', { endpoint: 'passed' })
  peer.next(silence)
  const { poller } = await polling({ timeoutMs: 200 })
  await poller.runOnce()
  await db.age('passed', '6 minutes')
  const before = asked.length
  await poller.runOnce()
  assert.equal(asked.length, before)
  assert.equal((await story('passed')).reason, 'key_window_passed')
})

// What an endpoint's answers do to the endpoint: it backs off, is paused, trips and is probed; deliveries wait and lose nothing.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { EndpointStop } from '../src/events.ts'
import { createPoller, removeEndpoint, resumeEndpoint } from '../src/index.ts'
import { deliverOnce, enqueue, keysOf, putClinic, testPoller } from './support/clinic.ts'
import { type TestDatabase, testDatabase } from './support/database.ts'
import { type Answer, startPeer, status } from './support/peer.ts'
import { until } from './support/until.ts'

const states = (db: TestDatabase) =>
  db.query(
    `select state, terminal_reason as why, count(*)::int as n from outbox.deliveries group by 1, 2 order by 1, 2`,
  )
/** Rounds of one poller until nothing is due. */
async function deliverAll(db: TestDatabase): Promise<void> {
  const poller = testPoller(db)
  while ((await poller.runOnce()).claimed > 0);
  await poller.stop()
}
const endpoint = async (db: TestDatabase) => {
  const [row] = await db.query<{ state: string; failures: number }>('select state, failures from outbox.endpoints')
  return row ?? assert.fail()
}
/** So much time passes at endpoints. */
const pass = (db: TestDatabase, seconds: number) =>
  db.query(
    `update outbox.endpoint set failing_since = failing_since - interval '${seconds} s',
       tripped_until = tripped_until - interval '${seconds} s', backoff_until = backoff_until - interval '${seconds} s'`,
  )

// case C56
test('a 429 leaves the whole endpoint in peace for as long as it asks, and all pollers know', async () => {
  const [db, peer] = [await testDatabase(), await startPeer()]
  await putClinic(db, peer.url, { concurrency: 1, partitions: 1 })
  await enqueue(db, keysOf('a', 5))
  peer.next(status(429, { 'retry-after': '60' }))
  assert.equal((await deliverOnce(db)).retry, 1)
  assert.equal((await deliverOnce(db)).claimed, 0)
  assert.equal(peer.received.length, 1)
  assert.match((await endpoint(db)).state, /^backing off until/)
  await pass(db, 59)
  assert.equal((await deliverOnce(db)).claimed, 0)
  await pass(db, 1)
  await deliverAll(db)
  assert.equal(peer.received.length, 5)
  const [again] = await db.query<{ s: number }>(
    `select extract(epoch from next_attempt_at - clock_timestamp())::float8 as s from outbox.deliveries where state = 'waiting'`,
  )
  assert.ok((again?.s ?? 0) > 200, 'its own pause is longer')
})

// case C59
test('a 410 is one request: the delivery is dead, the endpoint paused, and an event raised', async () => {
  const [db, peer] = [await testDatabase(), await startPeer()]
  await putClinic(db, peer.url, { concurrency: 1, partitions: 1, class: 'hospital' })
  const poller = testPoller(db)
  const stops: EndpointStop[] = []
  poller.on('endpoint.stopped', (stop) => stops.push(stop))
  // A lane that answers quickly is claimed one batch ahead.
  await enqueue(db, ['quick'])
  await poller.runOnce()
  await enqueue(db, keysOf('a', 3))
  peer.answer(status(410))
  const { claimed, dead, released } = await poller.runOnce()
  assert.deepEqual({ claimed, dead, released }, { claimed: 2, dead: 1, released: 1 })
  assert.equal((await deliverOnce(db)).claimed, 0)
  assert.equal(peer.received.length, 2)
  assert.deepEqual(await states(db), [
    { state: 'dead', why: 'gone', n: 1 },
    { state: 'delivered', why: null, n: 1 },
    { state: 'waiting', why: null, n: 2 },
  ])
  const reason = 'endpoint_rejects: gone'
  assert.deepEqual(stops, [{ endpoint: 'clinic', class: 'hospital', stop: 'paused', reason, forMs: null }])
  assert.equal((await endpoint(db)).state, `paused: ${reason}`)
})

for (const [why, spoil] of [
  ['blocked_address', (db: TestDatabase) => db.query('update outbox.endpoint set allow_private = false')],
  [
    'bad_config',
    (db: TestDatabase) => db.query(`update outbox.endpoint set secret_ref = 'env:OUTLEDGER_TEST_NO_SECRET'`),
  ],
] as const)
  test(`what is refused here for the endpoint's sake, ${why}, ends five deliveries of a backlog, and pauses it`, async () => {
    process.env.OUTLEDGER_TEST_NO_SECRET = 'not a secret'
    const [db, peer] = [await testDatabase(), await startPeer()]
    await putClinic(db, peer.url)
    await enqueue(db, keysOf('a', 20))
    await spoil(db)
    await deliverAll(db)
    assert.deepEqual(await states(db), [
      { state: 'dead', why, n: 5 },
      { state: 'waiting', why: null, n: 15 },
    ])
    assert.ok((await endpoint(db)).state.startsWith(`paused: endpoint_rejects: ${why}, `))
    assert.equal(peer.received.length, 0)
  })

test('a wrong secret at the receiver ends five deliveries of a backlog, however many are in flight', async () => {
  const [db, peer] = [await testDatabase(), await startPeer()]
  await putClinic(db, peer.url)
  await enqueue(db, keysOf('a', 200))
  peer.answer(status(401))
  const pollers = [createPoller({ databaseUrl: db.url }), createPoller({ databaseUrl: db.url })]
  after(() => Promise.all(pollers.map((poller) => poller.stop({ graceMs: 0 }))))
  await Promise.all(pollers.map((poller) => poller.start()))
  await until('it is paused', async () => (await endpoint(db)).state.startsWith('paused'))
  await Promise.all(pollers.map((poller) => poller.stop()))
  assert.ok(peer.received.length > 5, 'more were in flight')
  assert.deepEqual(await states(db), [
    { state: 'dead', why: 'auth_rejected', n: 5 },
    { state: 'waiting', why: null, n: 195 },
  ])
  assert.equal((await db.query('select 1 from outbox.attempts')).length, peer.received.length)
  peer.answer(status(200))
  await resumeEndpoint(db.sql, 'clinic', { why: 'the secret is right again' })
  await db.query('update outbox.queue set next_attempt_at = now()')
  await deliverAll(db)
  assert.deepEqual(await states(db), [
    { state: 'dead', why: 'auth_rejected', n: 5 },
    { state: 'delivered', why: null, n: 195 },
  ])
})

test('rejections that other deliveries interrupt pause nothing', async () => {
  const [db, peer] = [await testDatabase(), await startPeer()]
  await putClinic(db, peer.url, { concurrency: 1, partitions: 1 })
  await enqueue(db, keysOf('a', 30))
  let n = 0
  const sometimes: Answer = (response) => response.writeHead(++n % 5 === 0 ? 200 : 404).end()
  peer.answer(sometimes)
  await deliverAll(db)
  assert.equal((await endpoint(db)).state, 'open')
  assert.deepEqual(
    (await states(db)).map((row) => row.n),
    [24, 6],
  )
})

test('a dead endpoint trips, is probed by one delivery at a time, and delivers all once it is back', async () => {
  const [db, gone] = [await testDatabase(), await startPeer()]
  await putClinic(db, gone.url, { retryDelayMs: 60_000 })
  await gone.close()
  await enqueue(db, keysOf('a', 100))
  const attempts = async () =>
    Number((await db.query<{ n: string }>('select count(*) as n from outbox.attempts'))[0]?.n)
  await deliverOnce(db, { slots: 19 })
  assert.deepEqual([(await endpoint(db)).state, (await endpoint(db)).failures], ['open', 19])
  await pass(db, 10)
  await deliverOnce(db, { slots: 19 })
  assert.match((await endpoint(db)).state, /^tripped until/)
  const before = await attempts()
  assert.equal((await deliverOnce(db)).claimed, 0)
  for (const seconds of [5, 10, 20]) {
    await pass(db, seconds)
    await Promise.all([deliverOnce(db), deliverOnce(db)])
    assert.match((await endpoint(db)).state, /^tripped until/, `after ${seconds} s`)
  }
  assert.equal(await attempts(), before + 3, 'three probes, and nothing else')

  const back = await startPeer({ port: Number(new URL(gone.url).port) })
  const poller = testPoller(db)
  let opened = 0
  poller.on('endpoint.opened', () => opened++)
  await pass(db, 40)
  await poller.runOnce()
  assert.deepEqual([back.received.length, opened, (await endpoint(db)).state], [1, 1, 'open'])
  await db.query('update outbox.queue set next_attempt_at = now()')
  while ((await poller.runOnce()).claimed > 0);
  assert.deepEqual(await states(db), [{ state: 'delivered', why: null, n: 100 }])
})

test('a receiver that is away for a second under full load does not trip the circuit, and nothing is dead', async () => {
  const [db, first] = [await testDatabase(), await startPeer()]
  await putClinic(db, first.url, { retryDelayMs: 1_000 })
  await enqueue(db, keysOf('a', 600))
  const poller = testPoller(db, { pollIntervalMs: 100 })
  const stops: EndpointStop[] = []
  poller.on('endpoint.stopped', (stop) => stops.push(stop))
  await poller.start()
  await first.untilReceived(100)
  await first.close()
  const failed = async () => (await db.query(`select from outbox.attempt where outcome <> 'delivered'`)).length
  await until('many have failed', async () => (await failed()) >= 64)
  const since = performance.now()
  await until('a second has passed', () => performance.now() - since > 1_000)
  await startPeer({ port: Number(new URL(first.url).port) })
  await until('all are delivered', async () => (await states(db)).every((row) => row.state === 'delivered'))
  assert.deepEqual([stops, (await endpoint(db)).state], [[], 'open'])
})

const HELD = `failures = 30, failing_since = now(), rejections = 4, trip_ms = 5000, tripped_until = now() + interval '1 h', backoff_until = now() + interval '1 h'`
const held = (db: TestDatabase) =>
  db.query(
    `select failures, failing_since, rejections, trip_ms, tripped_until is null as closed, backoff_until from outbox.endpoint`,
  )
const NOTHING_HELD = {
  ...{ failures: 0, failing_since: null, rejections: 0, trip_ms: null, closed: true, backoff_until: null },
}

test('what a person does starts afresh: resume, another URL, a removal; another setting does not', async () => {
  const db = await testDatabase()
  await putClinic(db, 'http://127.0.0.1:1/a')
  const hold = () => db.query(`update outbox.endpoint set ${HELD}`)
  const acts: Record<string, () => Promise<unknown>> = {
    resume: () => resumeEndpoint(db.sql, 'clinic'),
    'another URL': () => putClinic(db, 'http://127.0.0.1:1/b'),
    removal: () => removeEndpoint(db.sql, 'clinic'),
  }
  await hold()
  const before = await held(db)
  await putClinic(db, 'http://127.0.0.1:1/a', { retentionDays: 9 })
  assert.deepEqual(await held(db), before)
  for (const [what, act] of Object.entries(acts)) {
    await hold()
    await act()
    assert.deepEqual(await held(db), [NOTHING_HELD], what)
  }
})

test('where a poller may not write about endpoints, attempts are settled all the same, and it says so', async () => {
  const [db, peer] = [await testDatabase(), await startPeer()]
  await putClinic(db, peer.url)
  await db.query(
    `create function refuse() returns trigger language plpgsql as $$ begin raise exception using errcode = '42501'; end $$`,
  )
  await db.query('create trigger refuse before update on outbox.endpoint for each row execute function refuse()')
  await enqueue(db, ['a', 'b'])
  peer.next(status(500), status(410))
  const poller = testPoller(db)
  const troubles: unknown[] = []
  poller.on('trouble', (trouble) => troubles.push(trouble))
  while ((await poller.runOnce()).claimed > 0);
  assert.deepEqual(await states(db), [{ state: 'waiting', why: null, n: 2 }])
  assert.equal((await db.query('select from outbox.attempt')).length, 2)
  assert.deepEqual(troubles.at(0), { during: 'report', code: '42501' })
})

// The poller in this process: what it refuses, what one round does, and what stop leaves behind.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createPoller, OutledgerError, putEndpoint, reviewEndpoint } from '../src/index.ts'
import { deliverOnce, enqueue, keysOf, putClinic, testPoller } from './support/clinic.ts'
import { testDatabase } from './support/database.ts'
import { gate, startPeer, status, when } from './support/peer.ts'
import { startProxy } from './support/proxy.ts'
import { testSecret } from './support/secret.ts'
import { rounds } from './support/session.ts'
import { until } from './support/until.ts'

const refused =
  (code: string, ...names: RegExp[]) =>
  (error: unknown) => {
    assert.ok(error instanceof OutledgerError)
    assert.equal(error.code, code)
    for (const name of names) assert.match(error.message, name)
    return true
  }

const invalid: [why: string, options: object, names: RegExp[]][] = [
  ['no database', {}, [/databaseUrl/, /required/]],
  ['an unknown name', { databaseUrl: 'postgres://x/', leaseMS: 1 }, [/"leaseMS"/, /did you mean "leaseMs"/]],
  ['a wrong type', { databaseUrl: 'postgres://x/', slots: '64' }, [/slots/, /"64"/, /whole number from 1 to 1000/]],
  ['out of range', { databaseUrl: 'postgres://x/', slots: 0 }, [/slots is 0/, /from 1 to 1000/]],
  [
    'a lease that a request outlives',
    { databaseUrl: 'postgres://x/', leaseMs: 20_000 },
    [/leaseMs 20000/, /timeoutMs 20000/, /settleBudgetMs 5000/, /raise leaseMs to 25100/],
  ],
]

for (const [why, options, names] of invalid) {
  test(`an option with ${why} is refused before anything is connected`, () => {
    assert.throws(() => createPoller(options as { databaseUrl: string }), refused('invalid_option', ...names))
  })
}

test('the shortest lease that is accepted is long enough to send something', async () => {
  const [db, peer] = [await testDatabase(), await startPeer()]
  await putClinic(db, peer.url)
  await enqueue(db, ['capture-1842'])
  const poller = testPoller(db, { leaseMs: 3_100, timeoutMs: 2_500, settleBudgetMs: 500, pollIntervalMs: 10 })
  await poller.start()
  await peer.untilReceived(1)
  await poller.stop()
  assert.equal((await db.query('select 1 from outbox.receipt')).length, 1)
})

test('start refuses a database without our schema, and leaves nothing behind', async () => {
  const empty = await testDatabase({ template: null })
  const poller = testPoller(empty)
  await assert.rejects(poller.start(), refused('schema_missing', /0 of \d+ migrations/, /outledger migrate/))
  await poller.stop()
  assert.deepEqual(await empty.query(`select 1 from pg_namespace where nspname = 'outbox'`), [])
})

test('start refuses a role whose transactions are repeatable read, and says what to run', async () => {
  const db = await testDatabase()
  const url = new URL(db.url)
  url.searchParams.set('default_transaction_isolation', 'repeatable read')
  const poller = testPoller({ url: url.href })
  await assert.rejects(poller.start(), refused('unsupported_database', /repeatable read/, /ALTER ROLE "postgres" SET/))
})

test('a round tells what the database wrote', async () => {
  const [db, peer] = [await testDatabase(), await startPeer()]
  await putClinic(db, peer.url, { partitions: 1 })
  await enqueue(db, ['a', 'b', 'c', 'd'])
  peer.next(status(200), status(503), status(410), status(200))
  assert.deepEqual(await deliverOnce(db), {
    ...{ claimed: 4, delivered: 2, retry: 1, dead: 1, block: 0, fenced: 0, released: 0 },
  })
  assert.deepEqual(await db.query('select state, count(*)::int as n from outbox.deliveries group by 1 order by 1'), [
    { state: 'dead', n: 1 },
    { state: 'delivered', n: 2 },
    { state: 'waiting', n: 1 },
  ])
  assert.deepEqual(await deliverOnce(db), {
    ...{ claimed: 0, delivered: 0, retry: 0, dead: 0, block: 0, fenced: 0, released: 0 },
  })
})

test('no more is claimed than there are slots', async () => {
  const [db, peer] = [await testDatabase(), await startPeer()]
  await putClinic(db, peer.url)
  await enqueue(db, keysOf('event', 20))
  const answer = gate()
  peer.answer(when(answer.opened))
  const poller = testPoller(db, { slots: 3, pollIntervalMs: 10, heartbeatMs: 50 })
  await poller.start()
  await peer.untilReceived(3)
  await rounds(db)
  assert.deepEqual(await db.query('select count(*)::int as n from outbox.queue where token is not null'), [{ n: 3 }])
  answer.open()
  await until('all are delivered', async () => (await db.query('select 1 from outbox.receipt')).length === 20)
  await poller.stop()
  assert.equal(peer.received.length, 20)
})

test('an endpoint with a longer timeout than the poller gets a longer lease', async () => {
  const [db, peer] = [await testDatabase(), await startPeer()]
  await putClinic(db, peer.url, { timeoutMs: 60_000 })
  await enqueue(db, ['slow'])
  const answer = gate()
  peer.answer(when(answer.opened))
  const poller = testPoller(db, {})
  await poller.start()
  await peer.untilReceived(1)
  const [lease] = await db.query<{ s: number }>(
    'select extract(epoch from next_attempt_at - leased_at)::float8 as s from outbox.queue',
  )
  assert.equal(Math.round(lease?.s ?? 0), 70)
  answer.open()
  await poller.stop()
})

test('what a claim had just leased when stop came goes back uncharged', async () => {
  const [db, peer] = [await testDatabase(), await startPeer()]
  await putClinic(db, peer.url)
  await enqueue(db, ['capture-1842'])
  const poller = testPoller(db, { pollIntervalMs: 10 })
  // A trigger holds the claim's update for as long as another session has the lock.
  await db.query(
    `create function hold() returns trigger language plpgsql as $$ begin perform pg_advisory_xact_lock_shared(1842); return new; end $$`,
  )
  await db.query(
    'create trigger hold before update on outbox.queue for each row when (new.token is not null) execute function hold()',
  )
  const held = gate()
  const holding = gate()
  const lock = db.sql.begin(async (tx) => {
    await tx`select pg_advisory_xact_lock(1842)`
    holding.open()
    await held.opened
  })
  await holding.opened
  await poller.start()
  await until(
    'a claim waits for the lock',
    async () =>
      (
        await db.query(
          `select 1 from pg_locks where locktype = 'advisory' and not granted and database = (select oid from pg_database where datname = current_database())`,
        )
      ).length === 1,
  )
  const stopped = poller.stop()
  held.open()
  await lock
  await stopped
  assert.equal(peer.received.length, 0)
  assert.deepEqual(
    await db.query('select attempts, token, next_attempt_at <= clock_timestamp() as due from outbox.queue'),
    [{ attempts: 0, token: null, due: true }],
  )
  assert.deepEqual(await db.query('select 1 from outbox.attempt'), [])
})

test('stop with the database away does not wait for it when there is nothing to write', async () => {
  const db = await testDatabase()
  const proxy = await startProxy(db.url)
  // A statement that was on its way when the database went is waited for, but not longer than its deadline.
  const poller = testPoller(proxy, { pollIntervalMs: 10, databaseDeadlineMs: 2_000 })
  await poller.start()
  await until('a heartbeat', async () => (await db.query('select 1 from outbox.poller')).length === 1)
  proxy.refuse()
  const since = performance.now()
  await poller.stop()
  assert.ok(performance.now() - since < 10_000, 'the grace time is 25 s')
})

test('a changed endpoint is used with the next claim, without a restart', async () => {
  const [db, old, next] = [await testDatabase(), await startPeer(), await startPeer()]
  await putClinic(db, old.url)
  const poller = testPoller(db, { pollIntervalMs: 10 })
  await poller.start()
  await enqueue(db, ['first'])
  await old.untilReceived(1)
  await putEndpoint(db.sql, { name: 'clinic', url: next.url, secret: testSecret() })
  await reviewEndpoint(db.sql, 'clinic', { why: 'the clinic moved' })
  await enqueue(db, ['second'])
  await next.untilReceived(1)
  await poller.stop()
  assert.deepEqual(
    [old.received, next.received].map((requests) => requests.map(({ key }) => key)),
    [['first'], ['second']],
  )
})

test('a claim whose endpoints cannot be read goes back, and the lane goes on when they can', async () => {
  const [db, peer] = [await testDatabase(), await startPeer()]
  await putClinic(db, peer.url, { concurrency: 1, partitions: 1 })
  await db.query('alter table outbox.endpoint rename column headers to hidden')
  await enqueue(db, ['capture-1842'])
  const poller = testPoller(db, { pollIntervalMs: 10 })
  const troubles: string[] = []
  poller.on('trouble', ({ during, code }) => troubles.push(`${during} ${code}`))
  await poller.start()
  await until('trouble', () => troubles.length > 0)
  await db.query('alter table outbox.endpoint rename column hidden to headers')
  await peer.untilReceived(1)
  await poller.stop()
  assert.equal(troubles[0], 'poll 42703')
  assert.deepEqual(await db.query('select number, outcome from outbox.attempts'), [{ number: 1, outcome: 'delivered' }])
})

test('a round before the start is no start, and a second start none either', async () => {
  const [db, peer] = [await testDatabase(), await startPeer()]
  await putClinic(db, peer.url)
  const poller = testPoller(db, { pollIntervalMs: 10 })
  let starts = 0
  poller.on('started', () => starts++)
  await poller.runOnce()
  await poller.start()
  await poller.start()
  await enqueue(db, ['flows'])
  await peer.untilReceived(1)
  assert.equal(starts, 1)
  await poller.stop()
})

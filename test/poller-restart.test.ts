// A poller that is stopped, started and run again, in any order and as often as wanted.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { migrate } from '../src/index.ts'
import { enqueue, putClinic, testPoller } from './support/clinic.ts'
import { type TestDatabase, testDatabase } from './support/database.ts'
import { gate, startPeer, status, when } from './support/peer.ts'
import { testSecretValue } from './support/secret.ts'
import { until } from './support/until.ts'

/** Connections that pollers have to this database. */
const connections = async (db: TestDatabase) =>
  (
    await db.query(
      `select 1 from pg_stat_activity where datname = current_database() and application_name = 'outledger'`,
    )
  ).length

const delivered = async (db: TestDatabase) =>
  (await db.query(`select 1 from outbox.deliveries where state = 'delivered'`)).length

/** What keeps this process awake, timers of the runtime's own left out. */
const awake = () =>
  process.getActiveResourcesInfo().filter((what) => /Timeout|TCPSocket|TLS|Immediate/.test(what)).length

// case C84
test('after stop and start both new and failed rows flow again, ten times over, and nothing is left behind', async () => {
  const [db, peer] = [await testDatabase(), await startPeer()]
  await putClinic(db, peer.url, { retryDelayMs: 0 })
  const poller = testPoller(db, { pollIntervalMs: 10, heartbeatMs: 50, sweepIntervalMs: 50, purgeIntervalMs: 50 })
  const told: string[] = []
  poller.on('started', () => told.push('started'))
  poller.on('stopped', () => told.push('stopped'))
  poller.on('trouble', ({ during, code }) => told.push(`${during} ${code}`))
  let before = 0
  for (let round = 1; round <= 10; round++) {
    peer.next(status(503))
    await enqueue(db, [`failed-${round}`])
    await poller.start()
    await peer.untilReceived(3 * round - 2)
    await poller.stop()
    await enqueue(db, [`new-${round}`])
    await poller.start()
    await until('both are delivered', async () => (await delivered(db)) === 2 * round)
    await poller.stop()
    await until('its connections are closed', async () => (await connections(db)) === 0)
    if (round === 2) before = awake()
  }
  assert.deepEqual(told, Array(20).fill(['started', 'stopped']).flat())
  assert.deepEqual(
    await db.query('select number, outcome, count(*)::int as n from outbox.attempts group by 1, 2 order by 1, 2'),
    [
      { number: 1, outcome: 'delivered', n: 10 },
      { number: 1, outcome: 'unknown', n: 10 },
      { number: 2, outcome: 'delivered', n: 10 },
    ],
  )
  assert.deepEqual(await db.query('select 1 from outbox.poller'), [])
  await until('no timer or socket is left', () => awake() <= before)
})

test('a start during a stop waits for it; of start and stop the last one counts', async () => {
  const [db, peer] = [await testDatabase(), await startPeer()]
  await putClinic(db, peer.url)
  const poller = testPoller(db, { pollIntervalMs: 10 })
  const told: string[] = []
  poller.on('started', () => told.push('started'))
  poller.on('stopped', () => told.push('stopped'))
  poller.on('attempt', ({ key }) => told.push(key))
  const answer = gate()
  peer.next(when(answer.opened))
  await enqueue(db, ['before'])
  await Promise.all([poller.start(), poller.start()])
  await peer.untilReceived(1)
  const stopped = [poller.stop(), poller.stop()]
  const again = [poller.start(), poller.start()]
  await enqueue(db, ['after'])
  answer.open()
  await Promise.all([...stopped, ...again])
  await peer.untilReceived(2)
  await until('both are delivered', async () => (await delivered(db)) === 2)
  assert.deepEqual(told, ['started', 'before', 'stopped', 'started', 'after'])

  await Promise.all([poller.stop(), poller.start(), poller.stop()])
  await until('its connections are closed', async () => (await connections(db)) === 0)
  assert.deepEqual(told.slice(5), ['stopped'], 'the start in between was overtaken')
  await Promise.all([poller.start(), poller.stop()])
  assert.equal(await connections(db), 0)
  assert.deepEqual(told.slice(6), [])
})

test('a start that failed leaves no connection and can be repeated when the schema is there', async () => {
  const db = await testDatabase({ template: null })
  const poller = testPoller(db, { pollIntervalMs: 10 })
  for (let i = 0; i < 2; i++) {
    await assert.rejects(poller.start(), { code: 'schema_missing' })
    await until('its connections are closed', async () => (await connections(db)) === 0)
  }
  await migrate(db.url)
  const peer = await startPeer()
  await putClinic(db, peer.url)
  await enqueue(db, ['capture-1842'])
  await poller.start()
  await until('it is delivered', async () => (await delivered(db)) === 1)
  await poller.stop()
})

test('a round after a stop, or while one is under way, is a round', async () => {
  const [db, peer] = [await testDatabase(), await startPeer()]
  await putClinic(db, peer.url)
  const poller = testPoller(db)
  for (const [i, key] of ['first', 'second', 'third'].entries()) {
    await enqueue(db, [key])
    assert.equal((await poller.runOnce()).delivered, 1)
    const stopped = poller.stop()
    if (i > 0) await stopped
  }
  assert.equal(await connections(db), 0)
})

test('a stop amid a round ends it: what it has leased goes back, and no connection is left', async () => {
  const [db, peer] = [await testDatabase(), await startPeer()]
  await putClinic(db, peer.url)
  await enqueue(db, ['capture-1842'])
  let stopped: Promise<void> | undefined
  const amid = testPoller(db, {
    resolveSecret: async () => {
      stopped ??= amid.stop()
      await new Promise(setImmediate)
      return testSecretValue
    },
  })
  assert.equal((await amid.runOnce()).released, 1)
  await stopped
  assert.deepEqual(await db.query('select state, attempts from outbox.deliveries'), [{ state: 'waiting', attempts: 0 }])

  const before = testPoller(db)
  const round = before.runOnce()
  await before.stop()
  assert.equal((await round).claimed, 0)
  assert.equal(await connections(db), 0)
})

test('a round that waits for a stop is overtaken by the next one: it makes no run that nobody ends', async () => {
  const db = await testDatabase()
  const poller = testPoller(db)
  await poller.runOnce()
  const stopped = poller.stop()
  const round = poller.runOnce()
  await Promise.all([stopped, poller.stop()])
  assert.deepEqual(await round, { claimed: 0, delivered: 0, retry: 0, dead: 0, block: 0, fenced: 0, released: 0 })
  assert.equal(await connections(db), 0)
  assert.deepEqual(await db.query('select 1 from outbox.poller'), [])
})

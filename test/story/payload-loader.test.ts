// A function of the app's that is slow, hangs or fails: it costs its own deliveries time, and nobody else anything.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Poller, PollerGiven, ReleasedEvent } from '../../src/index.ts'
import { enqueue, keysOf, putClinic, testPoller } from '../support/clinic.ts'
import { testDatabase } from '../support/database.ts'
import { gate, startPeer } from '../support/peer.ts'
import { until } from '../support/until.ts'

const db = await testDatabase()
const peer = await startPeer()
await putClinic(db, peer.url)
await putClinic(db, peer.url, { name: 'other' })

let last: Poller | null = null
/** A poller that is the only one, and nothing to do for it. */
const polling = async (given: Partial<PollerGiven>) => {
  await last?.stop({ graceMs: 0 })
  await db.query('delete from outbox.queue')
  const poller = testPoller(db, given)
  last = poller
  const released: ReleasedEvent[] = []
  poller.on('released', (event) => released.push(event))
  return { poller, released }
}
const referred = async (keys: readonly string[], more = {}) => {
  for (const key of keys) await enqueue(db, [key], { payload: undefined, payloadRef: key, ...more })
}
const delivered = (endpoint: string) =>
  db.query(`select 1 from outbox.deliveries where endpoint = $1 and state = 'delivered'`, endpoint)

test('a loader that hangs holds up nobody else, is aborted in time, and comes back after a pause', async () => {
  const held: AbortSignal[] = []
  const { poller, released } = await polling({
    ...{ slots: 4, leaseMs: 2_500, timeoutMs: 2_000, settleBudgetMs: 50, pollIntervalMs: 20 },
    loadPayload: (ref, { signal }) => {
      if (!ref.startsWith('hung')) return '[]'
      held.push(signal)
      return new Promise(() => {})
    },
  })
  await referred(keysOf('hung', 40))
  await poller.start()
  await until('loads hang', () => held.length >= 4)
  await enqueue(db, keysOf('beside', 20), { endpoint: 'other' })
  await referred(keysOf('beside-ref', 20), { endpoint: 'other' })
  await until('the others are delivered', async () => (await delivered('other')).length === 40)
  await until('one was given up', () => released.some(({ problem }) => problem?.includes('took too long')))
  const late = held.filter((signal) => !signal.aborted).length
  assert.ok(late <= 8, `${late} calls under way with 4 slots`)
  assert.equal((await db.query(`select 1 from outbox.attempts where key like 'hung%'`)).length, 0)
})

test('a loader that heeds no signal is not called without bound, and serves again when it is well', async () => {
  let [calls, rounds] = [0, 0]
  const well = gate()
  const { poller, released } = await polling({
    ...{ slots: 4, leaseMs: 300, timeoutMs: 100, settleBudgetMs: 50 },
    loadPayload: async () => {
      calls++
      await well.opened
      return '[]'
    },
  })
  await referred(keysOf('deaf', 24))
  const round = async () => {
    rounds++
    await db.query(`update outbox.queue set next_attempt_at = clock_timestamp() where token is null`)
    await poller.runOnce()
  }
  const refused = () => released.filter(({ problem }) => problem?.includes('heed the signal')).length
  while (refused() < 9 && rounds < 50) await round()
  assert.equal(calls, 8, 'twice as many as slots')
  assert.ok(refused() >= 9, `${refused()} were not tried`)
  well.open()
  const open = `select 1 from outbox.queue q join outbox.delivery d on d.id = q.delivery_id where d.key like 'deaf%'`
  await until('all are delivered', async () => {
    await round()
    return (await db.query(open)).length === 0
  })
})

test('a call that came back well makes none of those forgotten that have not', async () => {
  let hung = 0
  const { poller } = await polling({
    ...{ slots: 2, leaseMs: 300, timeoutMs: 100, settleBudgetMs: 50 },
    loadPayload: (ref) => {
      if (!ref.startsWith('leak')) return '[]'
      hung++
      return new Promise(() => {})
    },
  })
  for (let n = 1; n <= 6; n++) {
    await referred([`leak-${n}`])
    await poller.runOnce()
    await db.query('delete from outbox.queue')
    if (n <= 3) {
      await referred([`well-${n}`])
      assert.equal((await poller.runOnce()).delivered, 1)
    }
  }
  assert.equal(hung, 4, 'twice as many as slots')
})

test('a stop gives back at once what is being loaded, uncharged, and waits for no loader', async () => {
  const held: AbortSignal[] = []
  const { poller, released } = await polling({
    leaseMs: 600_000,
    loadPayload: (_ref, { signal }) => {
      held.push(signal)
      return new Promise(() => {})
    },
  })
  await referred(keysOf('stopped', 3))
  await poller.start()
  await until('they are being loaded', () => held.length === 3)
  let stopped = false
  poller.stop().then(() => {
    stopped = true
  })
  await until('it has stopped', () => stopped, 10_000)
  assert.ok(held.every((signal) => signal.aborted))
  assert.deepEqual(
    released.map(({ reason, delayMs, problem }) => [reason, delayMs, problem]),
    [['shutdown', 0, null]],
  )
  assert.deepEqual(
    await db.query(`select distinct attempts, token, next_attempt_at <= clock_timestamp() as due from outbox.queue`),
    [{ attempts: 0, token: null, due: true }],
  )
})

test('a payload that stays missing is asked for ever less often, though its neighbours get through', async () => {
  const { poller, released } = await polling({
    loadPayload: (ref) => (ref === 'missing' ? assert.fail() : '[]'),
  })
  await referred(['missing'])
  for (const key of ['near-1', 'near-2', 'near-3']) {
    await referred([key])
    assert.equal((await poller.runOnce()).delivered, 1)
    await db.age('missing', '1 minute')
  }
  assert.deepEqual(
    released.map(({ delayMs }) => delayMs),
    [1_000, 2_000, 4_000],
  )
})

test('a loader that is down is not asked for the whole backlog in turn, and nobody else waits', async () => {
  let calls = 0
  const { poller } = await polling({
    ...{ slots: 4, pollIntervalMs: 10 },
    loadPayload: () => {
      calls++
      throw new Error('down')
    },
  })
  await referred(keysOf('backlog', 200))
  await poller.start()
  const before = (await delivered('other')).length
  for (let n = 1; n <= 25; n++) {
    await enqueue(db, [`through-${n}`], { endpoint: 'other' })
    await until('it is delivered', async () => (await delivered('other')).length === before + n)
  }
  await poller.stop()
  assert.ok(calls > 0 && calls < 100, `${calls} calls`)
})

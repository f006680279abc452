import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { Events } from '../../src/events.ts'
import { Lanes } from '../../src/lanes.ts'
import { Ownership } from '../../src/ownership.ts'
import { resolveSecret } from '../../src/secrets.ts'
import { Settler } from '../../src/settler.ts'
import { Slots } from '../../src/slots.ts'
import { claim } from '../../src/sql/claim.ts'
import { endpointsById } from '../../src/sql/endpoint.ts'
import { Targets } from '../../src/targets.ts'
import { deliverOnce, enqueue, keysOf, putClinic, testPoller } from '../support/clinic.ts'
import { testDatabase } from '../support/database.ts'
import { gate, startPeer, status, when } from '../support/peer.ts'
import { until } from '../support/until.ts'

const LEASE_MS = 4_000
const TIMEOUT_MS = 1_500
const BUDGET_MS = 500

// case C10
test('50 leases for one slot: what would start too late is given back uncharged, and nobody starves', async () => {
  const [db, peer] = [await testDatabase(), await startPeer()]
  await putClinic(db, peer.url, { partitions: 1 })
  await enqueue(db, keysOf('short', 50))
  // A receiver that takes a tenth of the lease.
  peer.answer(async (response) => {
    await pause(LEASE_MS / 10)
    response.writeHead(200).end()
  })
  const options = { slots: 1, timeoutMs: TIMEOUT_MS, settleBudgetMs: BUDGET_MS, name: 'one-slot', heartbeatMs: 5_000 }
  const [lanes, targets, events] = [
    new Lanes({ ...options, ownership: new Ownership(options.name) }),
    new Targets(resolveSecret),
    new Events(),
  ]
  const settler = new Settler({ db, name: options.name, events, signal: new AbortController().signal })
  const lease = (leased: { claim: { delivery_id: string }; token: string }) => [
    { deliveryId: leased.claim.delivery_id, token: leased.token, probe: false },
  ]
  const NOBODY = { delayMs: 0, endpoint: null, class: null, problem: null }
  const slots = new Slots({
    ...options,
    lanes,
    targets,
    load: null,
    pin: () => assert.fail(),
    onUnloaded: () => assert.fail(),
    onEnded: (leased, ended) => {
      if (ended.kind === 'result') settler.push(ended.result)
      else settler.release(lease(leased), { ...NOBODY, reason: ended.reason })
    },
    onFault: (error) => assert.fail(String(error)),
  })
  after(() => slots.close())
  const wish = { endpointId: 1, lane: 1024, limit: 50, floor: null }
  const [token, startedAt] = [randomUUID(), performance.now()]
  const taken = await claim(db, {
    ...{ lanes: [wish], total: 50, slackMs: 0, leaseMs: LEASE_MS, timeoutMs: TIMEOUT_MS, token, poller: 'one-slot' },
  })
  assert.equal(taken.claims.length, 50)
  const [ends] = await db.query<{ at: string }>('select min(next_attempt_at)::text as at from outbox.queue')
  await targets.load(taken.claims, (ids) => endpointsById(db, ids))
  slots.take(
    taken.claims.map((row) => ({ claim: row, token, startedAt, clockOffsetMs: taken.nowMs - startedAt, probe: false })),
  )
  await slots.untilIdle()
  await settler.flush()

  const latest = `$1::timestamptz - interval '${TIMEOUT_MS + BUDGET_MS} milliseconds'`
  const [sent] = await db.query<{ n: number; late: number }>(
    `select count(*)::int as n, count(*) filter (where started_at > ${latest})::int as late from outbox.attempt`,
    ends?.at ?? null,
  )
  assert.ok(sent !== undefined && sent.n >= 1 && sent.n <= 6, `${sent?.n} were sent in the first half of the lease`)
  assert.equal(sent.late, 0, 'none was sent late')
  assert.equal(peer.received.length, sent.n)
  assert.deepEqual(
    await db.query(
      `select attempts, lost, first_attempt_at is null as untried, maybe_applied_at is null as surely_not, token is null as free, count(*)::int as n
       from outbox.queue group by 1, 2, 3, 4, 5`,
    ),
    [{ attempts: 0, lost: 0, untried: true, surely_not: true, free: true, n: 50 - sent.n }],
  )
  peer.answer(status(200))
  assert.equal((await deliverOnce(db)).delivered, 50 - sent.n)
})

test('a lease that waits behind slower requests than its own is given back before it runs out', async () => {
  const [db, fast, slow] = [await testDatabase(), await startPeer(), await startPeer()]
  await putClinic(db, fast.url, { partitions: 1 })
  await putClinic(db, slow.url, { name: 'slow', timeoutMs: 60_000, partitions: 1, concurrency: 2 })
  const answer = gate()
  slow.answer(when(answer.opened))
  const poller = testPoller(db, { slots: 2, leaseMs: 2_200, timeoutMs: 1_200, settleBudgetMs: 300, pollIntervalMs: 50 })
  const released: string[] = []
  poller.on('released', ({ reason }) => released.push(reason))
  await poller.start()
  // A lane that always has something to come is remembered.
  await enqueue(db, ['much-later'], { delayMs: 3_600_000 })
  // Where the clinic answers quickly its lane is claimed ahead of free slots; then both slots are taken for long.
  for (let quick = 0, n = 1; quick < 20; n++) {
    await enqueue(db, [`quick-${n}`])
    const took = () =>
      db.query<{ ms: string }>('select took_ms as ms from outbox.attempts where key = $1', `quick-${n}`)
    const [row] = await until('it is answered', async () => ((await took()).length > 0 ? took() : null))
    quick = Number(row?.ms) < 25 ? quick + 1 : 0
  }
  await enqueue(db, ['held-1', 'held-2'], { endpoint: 'slow' })
  await slow.untilReceived(2)
  await enqueue(db, ['waits'], {})
  await until('a lease was given back', () => released.length > 0)
  assert.deepEqual([...new Set(released)], ['lease_too_short'])
  answer.open()
  await until('all are delivered', async () => (await db.query('select 1 from outbox.queue')).length === 1)
  await poller.stop()
  assert.deepEqual(await db.query(`select number, outcome from outbox.attempts where key = 'waits'`), [
    { number: 1, outcome: 'delivered' },
  ])
})

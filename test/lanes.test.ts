// Lanes are arithmetic on what discovery and claims told: no database here. The clock is a number.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Lanes } from '../src/lanes.ts'
import { Ownership } from '../src/ownership.ts'
import type { Claim } from '../src/sql/claim.ts'
import type { LaneRow } from '../src/sql/discover.ts'
import { ownershipOf } from './support/ownership.ts'

const TAKE_OVER_MS = 15_000
const NOW_MS = 1_700_000_000_000

const row = (lane: number, other: Partial<LaneRow> = {}): LaneRow => ({
  ...{ endpoint_id: 1, lane, due_in_ms: 0, head: 'head', timeout_ms: null, concurrency: 64, partitions: 8 },
  stopped: false,
  half_open: false,
  ...other,
})
const rows = (n: number, other: Partial<LaneRow> = {}) => Array.from({ length: n }, (_, i) => row(1024 + i, other))

function lanesOf(rows: readonly LaneRow[], ownership = new Ownership('me')) {
  const lanes = new Lanes({ ownership, heartbeatMs: 5_000, timeoutMs: 4_000, settleBudgetMs: 5_000 })
  lanes.learn(rows, 0)
  return lanes
}

/** What a claim of `n` rows of a lane gives. */
const claimed = (lane: number, n: number, lagMs = 0) => ({
  nowMs: NOW_MS,
  claims: Array.from({ length: n }, () => ({ endpoint_id: 1, lane, lag_ms: lagMs }) as Claim),
})
const room = (free: number, ahead = 0) => ({ free, ahead })
const asked = (lanes: Lanes, free: number, now = 0, ahead = 0) => lanes.wishes(room(free, ahead), now)
const sum = (wishes: { limit: number }[]) => wishes.reduce((all, { limit }) => all + limit, 0)

test('free slots are shared evenly, and never promised twice', () => {
  for (const [free, lanes] of [
    [64, 8],
    [3, 20],
    [10, 4],
    [1, 1],
  ] as const) {
    const wishes = asked(lanesOf(rows(lanes)), free, 0, free)
    assert.ok(sum(wishes) <= free, `${sum(wishes)} asked for ${free} slots and ${lanes} lanes`)
    assert.ok(sum(wishes) >= Math.min(free, lanes * 8) - lanes, 'nearly all are used')
    assert.ok(Math.max(...wishes.map(({ limit }) => limit)) <= Math.ceil(free / Math.min(free, lanes)))
  }
})

test('with fewer slots than lanes every lane has its turn', () => {
  const lanes = lanesOf(rows(20))
  const seen = new Set<number>()
  for (let i = 0; i < 20; i++) for (const { lane } of asked(lanes, 3)) seen.add(lane)
  assert.equal(seen.size, 20)
})

test('an endpoint has at most its concurrency in flight, split over its lanes', () => {
  const lanes = lanesOf(rows(4, { concurrency: 10, partitions: 4 }))
  assert.deepEqual(
    asked(lanes, 1_000).map(({ limit }) => limit),
    [3, 3, 2, 2],
  )
  const wishes = asked(lanes, 1_000)
  lanes.taken(wishes, claimed(1024, 3), 1_000)
  assert.ok(!asked(lanes, 1_000).some(({ lane }) => lane === 1024), 'its cap is reached')
  for (let i = 0; i < 3; i++) assert.equal(lanes.startSending(1, 1024), true)
  assert.equal(lanes.startSending(1, 1024), false)
  lanes.ended(1, 1024, 100)
  assert.equal(lanes.startSending(1, 1024), true)
})

test('only a lane that answers quickly is claimed ahead of its free slots', () => {
  const lanes = lanesOf([row(1024), row(1025)])
  for (const [lane, tookMs] of [
    [1024, 5],
    [1025, 500],
  ] as const) {
    lanes.taken(asked(lanes, 16), claimed(lane, 1), 1)
    lanes.startSending(1, lane)
    lanes.ended(1, lane, tookMs)
  }
  lanes.learn([row(1024), row(1025)], 1)
  assert.deepEqual(
    asked(lanes, 0, 1, 16).map(({ lane }) => lane),
    [1024],
  )
  assert.deepEqual(asked(lanes, 0, 1, 0), [])
})

test('leases that were given back leave room for others', () => {
  const lanes = lanesOf([row(1024, { concurrency: 1, partitions: 1 })])
  lanes.taken(asked(lanes, 1), claimed(1024, 1), 1)
  assert.deepEqual(asked(lanes, 1), [])
  lanes.gaveBack(1, 1024)
  assert.equal(asked(lanes, 1).length, 1)
})

test('a lane that came back short is left alone until discovery finds something in it', () => {
  const lanes = lanesOf([row(1024)])
  lanes.taken(asked(lanes, 8), claimed(1024, 2), 8)
  assert.deepEqual(asked(lanes, 8), [])
  lanes.learn([row(1024, { due_in_ms: 700 })], 1_000)
  assert.deepEqual(asked(lanes, 8, 1_500), [])
  assert.equal(lanes.nextDueMs(1_500), 200)
  assert.equal(asked(lanes, 8, 1_700).length, 1)
})

test('an endpoint that rests is not asked for, whatever discovery finds, until its time or a whole round comes', () => {
  const lanes = lanesOf([row(1024), row(1025), row(1024, { endpoint_id: 2 })])
  const endpoints = (now: number) => [...new Set(asked(lanes, 8, now).map(({ endpointId }) => endpointId))].toSorted()
  lanes.rest(1, 5_000)
  assert.deepEqual(endpoints(0), [2])
  lanes.learn([row(1024), row(1025), row(1026), row(1024, { endpoint_id: 2 })], 4_000)
  assert.deepEqual([endpoints(4_999), endpoints(5_000)], [[2], [1, 2]])
  lanes.taken([{ endpointId: 2, lane: 1024, limit: 8, floor: null }], claimed(1024, 0), 8)
  lanes.rest(1, 9_000)
  assert.equal(lanes.nextDueMs(6_000), 3_000, 'and the loop need not look sooner')
  lanes.forget()
  lanes.learn([row(1024)], 6_000)
  assert.deepEqual(endpoints(6_000), [1])
})

test('a stopped endpoint gives no lane that is due', () => {
  const lanes = lanesOf(rows(8, { due_in_ms: null }))
  assert.deepEqual(asked(lanes, 64, 1e9), [])
  assert.equal(lanes.nextDueMs(0), Number.POSITIVE_INFINITY)
})

test('a claim starts where the last one ended, and every few seconds at the beginning', () => {
  const lanes = lanesOf([row(1024)])
  const [first] = asked(lanes, 8, 1)
  assert.equal(first?.floor, null)
  lanes.taken([first as never], claimed(1024, 8, 5_000), 8)
  for (let i = 0; i < 8; i++) {
    lanes.startSending(1, 1024)
    lanes.ended(1, 1024, 100)
  }
  assert.equal(asked(lanes, 8, 2)[0]?.floor, NOW_MS - 5_000, 'the last row that was passed')
  lanes.taken(asked(lanes, 8, 3), claimed(1024, 0), 8)
  lanes.learn([row(1024)], 4)
  assert.equal(asked(lanes, 8, 4)[0]?.floor, NOW_MS, 'the clock of the database')
  assert.equal(asked(lanes, 8, 5_002)[0]?.floor, null, 'a transaction longer than the slack is found then')
})

// case C23
test('a full pass that finds more than it may take goes on from there, far below the old floor', () => {
  const lanes = lanesOf([row(1024)])
  lanes.taken(asked(lanes, 8, 1), claimed(1024, 0), 8)
  lanes.learn([row(1024)], 2)
  assert.equal(asked(lanes, 8, 2)[0]?.floor, NOW_MS)
  const full = asked(lanes, 2, 5_002)
  assert.equal(full[0]?.floor, null)
  lanes.taken(full, claimed(1024, 2, 60_000), 2)
  assert.equal(asked(lanes, 8, 5_003)[0]?.floor, NOW_MS - 60_000, 'a minute below: the rest of that transaction')
})

test('a full pass that did not come to a lane is made up for with the next claim', () => {
  const lanes = lanesOf(rows(2))
  lanes.taken(asked(lanes, 4, 1), claimed(1024, 0), 4)
  lanes.learn(rows(2), 2)
  const wishes = asked(lanes, 4, 5_002)
  assert.deepEqual(
    wishes.map(({ floor }) => floor),
    [null, null],
  )
  lanes.taken(wishes, claimed(1024, 2), 2)
  const floorOf = (wanted: number, now: number) => asked(lanes, 4, now).find(({ lane }) => lane === wanted)?.floor
  assert.equal(floorOf(1024, 5_003), NOW_MS)
  lanes.taken(wishes, claimed(1024, 2), 2)
  assert.equal(floorOf(1025, 5_004), null)
  lanes.taken([wishes.find(({ lane }) => lane === 1025) as never], claimed(1025, 0), 9)
  lanes.learn(rows(2), 5_005)
  assert.equal(floorOf(1025, 5_006), NOW_MS)
})

// case C36
test('a lane of another poller is taken over when its due head has stood still for three heartbeats', () => {
  const lanes = lanesOf(rows(8), ownershipOf('me', ['me', 'other']))
  const mine = asked(lanes, 64).map(({ lane }) => lane)
  const theirs = rows(8).filter(({ lane }) => !mine.includes(lane))
  assert.ok(theirs.length > 0)
  const wanted = (head: string, now: number) => {
    lanes.learn(
      theirs.map((lane) => ({ ...lane, head, due_in_ms: -now })),
      now,
    )
    return asked(lanes, 64, now).length
  }
  assert.equal(wanted('1', 1_000), 0)
  assert.equal(wanted('1', 10_000), 0)
  assert.equal(wanted('2', 15_000), 0, 'somebody works there')
  assert.equal(wanted('2', 15_000 + TAKE_OVER_MS), 0)
  assert.equal(wanted('2', 15_001 + TAKE_OVER_MS), theirs.length)
})

test('a lane full of slow requests is left to its owner until the slowest must have ended', () => {
  const lanes = lanesOf(rows(8, { timeout_ms: 60_000 }), ownershipOf('me', ['me', 'other']))
  const mine = asked(lanes, 64).length
  const wanted = (now: number) => {
    lanes.learn(rows(8, { timeout_ms: 60_000, due_in_ms: -now }), now)
    return asked(lanes, 64, now).length
  }
  assert.equal(wanted(70_000), mine, 'timeout, settle budget and one heartbeat')
  assert.equal(wanted(70_001), 8)
})

test('of a stopped endpoint nothing is due before the next discovery; one that is to be probed gives one lane, once', () => {
  const lanes = lanesOf([...rows(2), row(1024, { endpoint_id: 2 })])
  lanes.stop(1)
  assert.deepEqual(
    lanes.wishes({ free: 9, ahead: 0 }, 1).map(({ endpointId }) => endpointId),
    [2],
  )
  assert.equal(lanes.probe(1), null)
  lanes.learn([...rows(2, { half_open: true }), row(1024, { endpoint_id: 2 })], 2)
  assert.equal(lanes.probe(2)?.endpointId, 1)
  assert.equal(lanes.probe(2), null, 'not another lane of the same endpoint')
  assert.deepEqual(
    lanes.wishes({ free: 9, ahead: 0 }, 2).map(({ endpointId }) => endpointId),
    [2],
  )
})

test('all lanes that could be probed are asked at once: one may have nothing that a probe takes', () => {
  const lanes = lanesOf([])
  lanes.learn(rows(3, { half_open: true }), 1)
  assert.deepEqual(lanes.probe(1), { endpointId: 1, lanes: [1024, 1025, 1026] })
})

test('a lane that its owner leaves alone is taken over by nobody who declines its endpoint', () => {
  const lanes = lanesOf(rows(8), ownershipOf('me', ['me', 'other'], ['me']))
  lanes.learn(rows(8, { due_in_ms: -60_000 }), 60_000)
  assert.deepEqual(asked(lanes, 64, 60_000), [])
  assert.equal(lanes.mayTry({ delivery_id: '1', endpoint_id: 1, lane: 1024, overdue_ms: 60_000 }), false)
})

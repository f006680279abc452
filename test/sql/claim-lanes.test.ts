import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { claim } from '../../src/sql/claim.ts'
import { testDatabase } from '../support/database.ts'
import { add, addEndpoint, LANE, lease } from '../support/ledger.ts'

const db = await testDatabase()
let endpoints = 0

const clinic = (more: Parameters<typeof addEndpoint>[1] = {}) =>
  addEndpoint(db, { name: `clinic-${++endpoints}`, ...more })

const keys = (rows: readonly { key: string }[]) => rows.map((row) => row.key)

test('limits hold for each lane and for the whole; a lane asked for twice counts once', async () => {
  const [one, two] = [await clinic(), await clinic()]
  for (const { name } of [one, two]) for (let i = 0; i < 5; i++) await add(db, `${name}-limit-${i}`, { endpoint: name })
  const wish = (endpoint: typeof one, limit: number) => ({
    endpointId: endpoint.id,
    lane: LANE,
    limit,
    floor: null,
  })
  const options = { slackMs: 0, leaseMs: 30_000, timeoutMs: 20_000, poller: 'p-1' }
  const take = async (lanes: ReturnType<typeof wish>[], total: number) => {
    const { claims } = await claim(db, { lanes, total, ...options, token: randomUUID() })
    return [one, two].map(({ id }) => claims.filter((row) => row.endpoint_id === id).length)
  }
  assert.deepEqual(await take([wish(one, 1), wish(two, 2)], 10), [1, 2])
  assert.deepEqual(await take([wish(one, 2), wish(two, 2)], 3), [2, 1])
  assert.deepEqual(await take([wish(one, 1), wish(one, 1)], 10), [1, 0])
  assert.deepEqual(await take([wish(one, 9), wish(two, 9)], 10), [1, 2])
})

test('with nothing due a claim tells the clock of the database all the same', async () => {
  const options = { lanes: [], total: 1, slackMs: 0, leaseMs: 1, timeoutMs: 1, token: randomUUID(), poller: 'p-1' }
  const { nowMs, claims } = await claim(db, options)
  assert.deepEqual(claims, [])
  const [clock] = await db.query<{ ago: number }>(
    'select extract(epoch from clock_timestamp())::float8 * 1000 - $1::text::float8 as ago',
    String(nowMs),
  )
  assert.ok(clock !== undefined && clock.ago >= 0 && clock.ago < 60_000)
})

test('a floor, less its slack, hides what was due before', async () => {
  const endpoint = await clinic()
  for (const [key, age] of [
    ['old', '1 hour'],
    ['new', '1 second'],
  ] as const) {
    await add(db, `floor-${key}`, { endpoint: endpoint.name })
    await db.age(`floor-${key}`, age)
  }
  const [minuteAgo] = await db.query<{ ms: number }>(
    'select floor(extract(epoch from now()) - 60)::float8 * 1000 as ms',
  )
  const floor = minuteAgo?.ms ?? 0
  assert.deepEqual(keys(await lease(db, endpoint, { floor })), ['floor-new'])
  assert.deepEqual(keys(await lease(db, endpoint, { floor, slackMs: 7_200_000 })), ['floor-old'])
})

test('an endpoint that is paused, backing off or tripped gives nothing until it is over', async () => {
  const endpoint = await clinic()
  await add(db, 'stopped', { endpoint: endpoint.name })
  const set = (what: string) => db.query(`update outbox.endpoint set ${what} where id = $1`, endpoint.id)
  for (const stop of [
    `paused_at = now(), paused_reason = 'audit'`,
    `paused_at = null, paused_reason = null, backoff_until = now() + interval '1 minute'`,
    `backoff_until = now() - interval '1 minute', tripped_until = now() + interval '1 minute'`,
  ]) {
    await set(stop)
    assert.deepEqual(await lease(db, endpoint), [], stop)
  }
  await set(`tripped_until = now() - interval '1 minute'`)
  assert.deepEqual(await lease(db, endpoint), [], 'now it is probed, by a claim of its own')
  await set(`tripped_until = null`)
  assert.deepEqual(keys(await lease(db, endpoint)), ['stopped'])
})

test('an endpoint with a longer timeout gets a lease that is longer by the difference', async () => {
  const [slow, fast] = [await clinic({ timeoutMs: 45_000 }), await clinic({ timeoutMs: 5_000 })]
  for (const { name } of [slow, fast]) await add(db, `${name}-timeout`, { endpoint: name })
  const [a] = await lease(db, slow)
  const [b] = await lease(db, fast)
  assert.deepEqual(
    [a, b].map((row) => Math.round((row?.lease_ms ?? 0) / 1000)),
    [55, 30],
  )
})

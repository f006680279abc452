import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { claimProbe } from '../../src/sql/claim.ts'
import type { Executor } from '../../src/sql/executor.ts'
import { release } from '../../src/sql/release.ts'
import { suspects } from '../../src/sql/suspects.ts'
import { testDatabase } from '../support/database.ts'
import { add, addEndpoint, expire, LANE, lease, leaseSuspect } from '../support/ledger.ts'
import { begin } from '../support/session.ts'

const db = await testDatabase()
const clinic = await addEndpoint(db)

const LEASE = { leaseMs: 30_000, timeoutMs: 20_000, poller: 'p-1' }
const probe = async (on: Executor = db) => {
  const { claims } = await claimProbe(on, { ...LEASE, endpointId: clinic.id, lanes: [LANE], token: randomUUID() })
  return claims.map(({ key }) => key)
}
const tripped = async (): Promise<number | null> => {
  const [row] = await db.query<{ s: number | null }>(
    'select round(extract(epoch from tripped_until - clock_timestamp()))::int as s from outbox.endpoint',
  )
  return row?.s ?? null
}
const idOf = async (key: string): Promise<string> => {
  const [row] = await db.query<{ id: string }>('select id::text from outbox.delivery where key = $1', key)
  return row?.id ?? assert.fail(key)
}
const set = (what: string) => db.query(`update outbox.endpoint set ${what}`)

test('one delivery is let through when the pause is over, the longest due, and keeps the others away for a lease', async () => {
  for (const key of ['a', 'b', 'c']) await add(db, key)
  await db.age('b', '1 minute')
  assert.deepEqual(await probe(), [], 'the circuit is closed: nothing to probe')
  await set(`tripped_until = clock_timestamp() + interval '1 s'`)
  assert.deepEqual(await probe(), [], 'not yet')
  assert.deepEqual(await lease(db, clinic), [])
  await set(`tripped_until = clock_timestamp() - interval '1 s'`)
  assert.deepEqual(await lease(db, clinic), [], 'nothing but a probe')
  assert.deepEqual(await probe(), ['b'])
  assert.equal(await tripped(), 30)
  assert.deepEqual(await probe(), [], 'one at a time')
})

test('of two pollers that probe at once one gets a delivery, and neither waits', async () => {
  await set(`tripped_until = clock_timestamp() - interval '1 s'`)
  const [first, second] = [await begin(db), await begin(db)]
  const [a, b] = [await probe(first), await probe(second)]
  assert.deepEqual([a.length, b.length], [1, 0])
  await Promise.all([first.rollback(), second.rollback()])
})

test('a pause of a person and a wait that was asked for win over the probe', async () => {
  for (const stop of [`paused_at = now(), paused_reason = 'audit'`, `backoff_until = now() + interval '1 minute'`]) {
    await set(`tripped_until = clock_timestamp() - interval '1 s', ${stop}`)
    assert.deepEqual(await probe(), [], stop)
    assert.equal(await tripped(), -1)
    await set('paused_at = null, paused_reason = null, backoff_until = null')
  }
})

test('where nothing is due the pause is not touched; a probe that was lost is on record', async () => {
  await db.query(`update outbox.queue set next_attempt_at = clock_timestamp() + interval '1 hour' where token is null`)
  assert.deepEqual(await probe(), [])
  assert.equal(await tripped(), -1)
  await expire(db, 'b')
  assert.deepEqual(await probe(), ['b'])
  assert.deepEqual(await db.query(`select number, outcome, reason from outbox.attempt`), [
    { number: 1, outcome: 'unknown', reason: 'worker_lost' },
  ])
})

test('a suspect is passed over by the probe, and let through by its own claim once the pause is over', async () => {
  await db.query(
    `update outbox.queue set lost = 2, next_attempt_at = clock_timestamp() - interval '1 s', token = null, leased_at = null, leased_by = null`,
  )
  const alone = async () => {
    const found = await suspects(db, { limit: 10 })
    const taken = await leaseSuspect(
      db,
      found.map((one) => one.delivery_id),
    )
    return [found.length > 0, taken.length]
  }
  await set(`tripped_until = clock_timestamp() + interval '1 s'`)
  assert.deepEqual(await alone(), [false, 0])
  await set(`tripped_until = clock_timestamp() - interval '1 s'`)
  assert.deepEqual(await probe(), [])
  assert.deepEqual(await alone(), [true, 1])
})

test('of a suspect and a probe that are claimed at once one gets through, whichever is first, and neither waits', async () => {
  await db.query(
    `update outbox.queue set lost = case when delivery_id = $1 then 2 else 0 end, token = null, leased_at = null, leased_by = null,
       next_attempt_at = clock_timestamp() - interval '1 s'`,
    await idOf('a'),
  )
  const suspect = async (on: Executor) => (await leaseSuspect(on, [await idOf('a')])).length
  const single = async (on: Executor) => (await probe(on)).length
  for (const [one, other] of [
    [suspect, single],
    [single, suspect],
  ] as const) {
    await set(`tripped_until = clock_timestamp() - interval '1 s'`)
    const [first, second] = [await begin(db), await begin(db)]
    assert.deepEqual([await one(first), await other(second)], [1, 0])
    await Promise.all([first.rollback(), second.rollback()])
  }
})

test('a probe that goes back unsent lets the next one follow as soon as itself, one that is no longer held does not', async () => {
  await db.query(
    `update outbox.queue set lost = 0, token = null, leased_at = null, leased_by = null, next_attempt_at = clock_timestamp() - interval '1 s'`,
  )
  await set(`tripped_until = clock_timestamp() - interval '1 s'`)
  const token = randomUUID()
  const { claims } = await claimProbe(db, { ...LEASE, endpointId: clinic.id, lanes: [LANE], token })
  const [taken] = claims.map((claim) => ({ deliveryId: claim.delivery_id, token, probe: claim.standing === 'probe' }))
  assert.equal(await tripped(), 30)
  await release(db, [{ ...taken!, token: randomUUID() }], { delayMs: 0 })
  assert.equal(await tripped(), 30)
  await release(db, [{ ...taken!, probe: false }], { delayMs: 0 })
  assert.equal(await tripped(), 30, 'another one holds the gate')
  const again = await claimProbe(db, { ...LEASE, endpointId: clinic.id, lanes: [LANE], token: randomUUID() })
  assert.deepEqual(again.claims, [])
  await set(`tripped_until = clock_timestamp() - interval '1 s'`)
  const next = randomUUID()
  const { claims: mine } = await claimProbe(db, { ...LEASE, endpointId: clinic.id, lanes: [LANE], token: next })
  const lease = { deliveryId: mine[0]!.delivery_id, token: next, probe: true }
  await release(db, [lease], { delayMs: 7_000 })
  assert.equal(await tripped(), 7)
})

test('a probe that goes back while a person keeps the endpoint locked waits for nobody, and a closed circuit stays closed', async () => {
  for (const closed of [false, true]) {
    await db.query(
      `update outbox.queue set token = null, leased_at = null, leased_by = null, next_attempt_at = clock_timestamp() - interval '1 s'`,
    )
    await set(`tripped_until = clock_timestamp() - interval '1 s'`)
    const token = randomUUID()
    const { claims } = await claimProbe(db, { ...LEASE, endpointId: clinic.id, lanes: [LANE], token })
    const person = await begin(db)
    if (closed) await set('tripped_until = null')
    else await person.run('select from outbox.endpoint for update', [])
    const given = await release(db, [{ deliveryId: claims[0]!.delivery_id, token, probe: true }], { delayMs: 0 })
    await person.rollback()
    assert.deepEqual([given.length, await tripped()], closed ? [1, null] : [1, 30])
  }
})

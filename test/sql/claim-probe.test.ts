import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { claimProbe, suspects } from '../../src/sql/claim.ts'
import type { Executor } from '../../src/sql/executor.ts'
import { testDatabase } from '../support/database.ts'
import { add, addEndpoint, expire, LANE, lease, leaseSuspect } from '../support/ledger.ts'
import { begin } from '../support/session.ts'

const db = await testDatabase()
const clinic = await addEndpoint(db)

const probe = async (on: Executor = db) => {
  const lease = { leaseMs: 30_000, timeoutMs: 20_000, token: randomUUID(), poller: 'p-1' }
  const { claims } = await claimProbe(on, { endpointId: clinic.id, lanes: [LANE], ...lease })
  return claims.map(({ key }) => key)
}
const tripped = async (): Promise<number | null> => {
  const [row] = await db.query<{ s: number | null }>(
    'select round(extract(epoch from tripped_until - clock_timestamp()))::int as s from outbox.endpoint',
  )
  return row?.s ?? null
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

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { beforeEach, test } from 'node:test'
import { purge } from '../../src/sql/purge.ts'
import { settle } from '../../src/sql/settle.ts'
import { testDatabase } from '../support/database.ts'
import { add, addEndpoint, GONE, type Leased, lease, RETRY, result } from '../support/ledger.ts'

const db = await testDatabase()
const endpoint = await addEndpoint(db, { retentionDays: 30 })
const LIFE = ['delivery', 'queue', 'attempt', 'receipt', 'tombstone', 'purge_run']

beforeEach(() => db.query(`truncate ${LIFE.map((table) => `outbox.${table}`).join(', ')}`))

const purgeAll = (more: Partial<Parameters<typeof purge>[1]> = {}, on: Parameters<typeof purge>[0] = db) =>
  purge(on, { limit: 100, tombstoneDays: 365, runId: randomUUID(), ...more })
const NOTHING = { deliveries: 0, attempts: 0, tombstones: 0, tombstonesExpired: 0 }

async function next(key: string): Promise<Leased> {
  return (await lease(db, endpoint)).find((claim) => claim.key === key) ?? assert.fail(`${key} was not due`)
}

const counts = async () =>
  (
    await db.query(
      `select ${LIFE.map((table) => `(select count(*)::int from outbox.${table}) as ${table}`).join(', ')}`,
    )
  )[0]

// case C80
test('what is waiting, leased, parked or blocked is not purged, however old it is', async () => {
  await add(db, 'blocked', { orderingKey: 'B' })
  await settle(db, [result(await next('blocked'), { ...GONE, verdict: 'block' })], 'p-1')
  await add(db, 'leased', { orderingKey: 'L' })
  await next('leased')
  await add(db, 'parked', { orderingKey: 'L' })
  await add(db, 'retried')
  await settle(db, [result(await next('retried'), RETRY)], 'p-1')
  await add(db, 'waiting', { retentionDays: '0' })
  await db.query(
    `update outbox.delivery set discovered_at = discovered_at - interval '50 years', scheduled_at = scheduled_at - interval '50 years'`,
  )
  for (const key of ['blocked', 'leased', 'parked', 'retried', 'waiting']) await db.age(key, '50 years')
  const before = await counts()
  assert.deepEqual(await purgeAll(), NOTHING)
  assert.deepEqual(await counts(), before)
  assert.deepEqual(before, { delivery: 5, queue: 5, attempt: 2, receipt: 0, tombstone: 0, purge_run: 0 })
})

// case C81
test('retention counts from the end, not from the beginning', async () => {
  await add(db, 'long')
  const first = await next('long')
  await settle(db, [result(first, RETRY)], 'p-1')
  await db.query(
    `update outbox.delivery set discovered_at = discovered_at - interval '40 days', scheduled_at = scheduled_at - interval '40 days'`,
  )
  await db.age('long', '40 days')
  await settle(db, [result(await next('long'))], 'p-1')
  assert.deepEqual(await purgeAll(), NOTHING)
  await db.age('long', '29 days 23 hours')
  assert.deepEqual(await purgeAll(), NOTHING)
  await db.age('long', '2 hours')
  assert.deepEqual(await purgeAll(), { ...NOTHING, deliveries: 1, attempts: 2, tombstones: 1 })
})

// case C82
test('even with a receipt that must not be there an open delivery is not purged', async () => {
  const id = await add(db, 'open')
  await db.query(
    `insert into outbox.receipt (delivery_id, ended_at, delete_after, attempts, ending, certainty)
     values ($1, now() - interval '2 days', now() - interval '1 day', 1, 'delivered', 'delivered')`,
    id,
  )
  assert.deepEqual(await purgeAll(), NOTHING)
  assert.equal((await next('open')).payload, '{"patient":1842}')
})

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import type { Executor } from '../../src/sql/executor.ts'
import { late } from '../../src/sql/late.ts'
import { mend } from '../../src/sql/mend.ts'
import { promote } from '../../src/sql/promote.ts'
import { purge } from '../../src/sql/purge.ts'
import { release } from '../../src/sql/release.ts'
import { settle } from '../../src/sql/settle.ts'
import { testDatabase } from '../support/database.ts'
import { addEndpoint, GONE, given, lease, RETRY, result } from '../support/ledger.ts'
import { touchedBy } from '../support/plan.ts'

const db = await testDatabase()
const endpoint = await addEndpoint(db)
const ROWS = 20_000
const BATCH = 100

/** Deliveries `from` to `to`, each half of them with an ordering key of its own, all due. */
const open = (from: number, to: number) =>
  db.query(
    `with d as (
       insert into outbox.delivery (id, key, endpoint_id, lane, type, payload, payload_sha256, discovered_by, scheduled_at, ordering_key)
       overriding system value
       select i, 'k' || i, $1::text::int, 1024, 't', '{}', sha256('{}'), 'app', now(), case when i % 2 = 0 then 'o' || i end
       from generate_series($2::text::int, $3::text::int) i)
     insert into outbox.queue (delivery_id, next_attempt_at, endpoint_id, lane, ordering_key)
     select i, now() - interval '1 hour' + i * interval '1 millisecond', $1::text::int, 1024, case when i % 2 = 0 then 'o' || i end
     from generate_series($2::text::int, $3::text::int) i`,
    String(endpoint.id),
    String(from),
    String(to),
  )

const end = (from: number, to: number) =>
  db.query(
    `with a as (
       insert into outbox.attempt (delivery_id, number, token, started_at, finished_at, outcome, verdict, request_sent, poller)
       select i, 1, gen_random_uuid(), now(), now(), 'delivered', 'delivered', true, 'p' from generate_series($1::text::int, $2::text::int) i)
     insert into outbox.receipt (delivery_id, ended_at, delete_after, attempts, ending, certainty)
     select i, now(), now(), 1, 'delivered', 'delivered' from generate_series($1::text::int, $2::text::int) i`,
    String(from),
    String(to),
  )

// The worst statistics: taken at an idle moment, when the tables had pages and no rows. The planner takes them for empty.
const TABLES = ['delivery', 'queue', 'attempt', 'receipt', 'tombstone']
for (const table of TABLES) await db.query(`alter table outbox.${table} set (autovacuum_enabled = off)`)
await open(1, 2_000)
await end(2_001, 4_000)
for (const table of TABLES) {
  await db.query(`delete from outbox.${table}`)
  await db.query(`vacuum (analyze, truncate off) outbox.${table}`)
}
await open(1, ROWS)
await end(ROWS + 1, 2 * ROWS)

/** No table is looked at for more than a few rows and pages for each one of the batch, whatever lies behind. */
async function bounded(what: string, work: (db: Executor) => Promise<unknown>, batch = BATCH): Promise<void> {
  for (const { name, rows, pages } of await touchedBy(db, work)) {
    assert.ok(rows <= 16 * batch && pages <= 32 * batch, `${what} touched ${rows} rows of ${name} in ${pages} pages`)
  }
}

test('a claim touches only what it takes', async () => {
  await bounded('claim', (executor) => lease(executor, endpoint, { limit: BATCH }))
})

test('settle, release, late and mend touch only their batch', async () => {
  const lost = await lease(db, endpoint, { limit: BATCH })
  await db.query(`update outbox.queue set next_attempt_at = now() - interval '2 hours' where token is not null`)
  const held = await lease(db, endpoint, { limit: BATCH })
  assert.deepEqual(
    held.map((claim) => claim.number),
    Array(BATCH).fill(2),
  )
  for (const [what, more] of Object.entries({
    delivered: {},
    retry: RETRY,
    dead: GONE,
    block: { ...GONE, verdict: 'block' } as const,
  }))
    await bounded(what, async (executor) =>
      settle(
        executor,
        held.map((claim) => result(claim, more)),
        'p-1',
      ),
    )
  const leases = held.map(given)
  await bounded('release', (executor) => release(executor, leases, { delayMs: 0 }))
  const results = lost.map((claim) => result(claim))
  await bounded('late', async (executor) => late(executor, results))
  await late(db, results)
  await db.query('update outbox.queue set token = null, leased_at = null, leased_by = null where token is not null')
  await bounded('mend', (executor) =>
    mend(
      executor,
      leases.map(({ deliveryId }) => deliveryId),
    ),
  )
})

test('a purge touches only its batch', async () => {
  await bounded('purge', (executor) => purge(executor, { limit: BATCH, tombstoneDays: 1, runId: randomUUID() }))
})

test('a sweep touches the first parked row of each key, however many are behind it', async () => {
  const keys = 50
  await db.query(
    `update outbox.queue set next_attempt_at = 'infinity', ordering_key = 'o' || delivery_id % ${keys} where token is null`,
  )
  await bounded('promote', (executor) => promote(executor, { endpointId: 0, orderingKey: '', keys: 1_000 }), keys)
})

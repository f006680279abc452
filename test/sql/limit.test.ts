import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import type { EndpointRow } from '../../src/sql/endpoint.ts'
import { purge } from '../../src/sql/purge.ts'
import { testDatabase } from '../support/database.ts'
import { addEndpoint, lease } from '../support/ledger.ts'
import { begin, type Session } from '../support/session.ts'

const ROUNDS = 50

/** Ways in which a planner with wrong statistics may come to execute a subquery more than once. */
const FAMILIES = {
  default: '',
  'nested loops': 'set local enable_hashjoin = off; set local enable_mergejoin = off',
  hash: 'set local enable_nestloop = off; set local enable_mergejoin = off',
  merge: 'set local enable_nestloop = off; set local enable_hashjoin = off',
  'index only': 'set local enable_seqscan = off; set local enable_bitmapscan = off',
  'no index':
    'set local enable_indexscan = off; set local enable_indexonlyscan = off; set local enable_bitmapscan = off',
  'generic plan': 'set local plan_cache_mode = force_generic_plan',
  'nested loops without cache':
    'set local enable_hashjoin = off; set local enable_mergejoin = off; set local enable_material = off; set local enable_memoize = off',
}

const db = await testDatabase()
// The statistics are the test's: nobody else shall take them.
for (const table of ['queue', 'receipt', 'delivery'])
  await db.query(`alter table outbox.${table} set (autovacuum_enabled = off)`)
const endpoint = await addEndpoint(db)

/** Statistics of one row, then twenty more of it; `work` sees that in each plan family, and it is undone afterwards. */
async function inEachFamily(
  seed: (session: Session, from: number, to: number) => Promise<unknown>,
  work: (session: Session) => Promise<{ took: number; changed: number }>,
): Promise<void> {
  for (const [family, settings] of Object.entries(FAMILIES)) {
    const session = await begin(db)
    // A fresh file: dead rows of the family before would tell the planner that the table is large.
    await session.run('truncate outbox.delivery, outbox.queue, outbox.receipt', [])
    await seed(session, 1, 1)
    await session.run('analyze outbox.queue, outbox.receipt', [])
    await seed(session, 2, 21)
    // What is switched off costs a great deal, and would be compiled.
    await session.run('set local jit = off', [])
    for (const setting of settings.split('; ')) if (setting !== '') await session.run(setting, [])
    const wrong = []
    for (let round = 0; round < ROUNDS; round++) {
      await session.run('savepoint round', [])
      const { took, changed } = await work(session)
      if (took !== 2 || changed !== 2) wrong.push({ round, took, changed })
      await session.run('rollback to savepoint round', [])
    }
    await session.rollback()
    assert.deepEqual(wrong, [], family)
  }
}

const count = async (session: Session, text: string): Promise<number> =>
  (await session.run<{ n: number }>(`select count(*)::int as n from outbox.${text}`, []))[0]?.n ?? -1

const seedQueue = (id: EndpointRow['id']) => (session: Session, from: number, to: number) =>
  session.run(
    `with d as (
       insert into outbox.delivery (id, key, endpoint_id, lane, type, payload, payload_sha256, discovered_by, scheduled_at)
       overriding system value
       select i, 'k' || i, $1::text::int, 1024, 't', '{}', sha256('{}'), 'app', now() from generate_series($2::text::int, $3::text::int) i)
     insert into outbox.queue (delivery_id, next_attempt_at, endpoint_id, lane)
     select i, now(), $1::text::int, 1024 from generate_series($2::text::int, $3::text::int) i`,
    [String(id), String(from), String(to)],
  )

// case C01
test('a claim takes no more than its limit, whatever the planner makes of it', async () => {
  await inEachFamily(seedQueue(endpoint.id), async (session) => ({
    took: (await lease(session, endpoint, { limit: 2 })).length,
    changed: await count(session, 'queue where token is not null'),
  }))
})

// case C01
test('a purge deletes no more than its limit, whatever the planner makes of it', async () => {
  const seed = (session: Session, from: number, to: number) =>
    session.run(
      `insert into outbox.receipt (delivery_id, ended_at, delete_after, attempts, ending, certainty)
       select i, now(), now(), 1, 'delivered', 'delivered' from generate_series($1::text::int, $2::text::int) i`,
      [String(from), String(to)],
    )
  await inEachFamily(seed, async (session) => {
    await purge(session, { limit: 2, tombstoneDays: 1, runId: randomUUID() })
    const gone = 21 - (await count(session, 'receipt'))
    return { took: gone, changed: gone }
  })
})

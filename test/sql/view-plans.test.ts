import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type ListFilter, list, status } from '../../src/look.ts'
import type { Executor } from '../../src/sql/executor.ts'
import { testDatabase } from '../support/database.ts'
import { addEndpoint } from '../support/ledger.ts'
import { touchedBy } from '../support/plan.ts'

const db = await testDatabase()
await addEndpoint(db)
const ENDED = 20_000
const DEAD = 10
const DOUBTFUL = 3
const TABLES = ['delivery', 'attempt', 'receipt', 'queue']

/** A history of deliveries that have ended, `DEAD` of them dead, and as many that are open; `DOUBTFUL` of each may have been applied. */
const history = (rows: number) =>
  db.query(
    `with n as (select i from generate_series(1, $1::text::int) i), d as (
       insert into outbox.delivery (id, key, endpoint_id, lane, type, payload, payload_sha256, discovered_by, scheduled_at)
       overriding system value
       select i, 'k' || i, (select id from outbox.endpoint), 1024, 't', '{}', sha256('{}'), 'app', now() from n), a as (
       insert into outbox.attempt (delivery_id, number, token, started_at, finished_at, outcome, verdict, request_sent, poller, reason)
       select i, 1, gen_random_uuid(), now(), now(), o.outcome, 'dead', true, 'p', 'gone'
       from n cross join lateral (select case when i <= ${2 * DEAD} then 'rejected' else 'delivered' end as outcome) o), q as (
       insert into outbox.queue (delivery_id, next_attempt_at, endpoint_id, lane, maybe_applied_at)
       select i, now(), (select id from outbox.endpoint), 1024, case when i <= ${DOUBTFUL} then now() end from n where i <= ${DEAD})
     insert into outbox.receipt (delivery_id, ended_at, delete_after, attempts, ending, certainty, reason)
     select i, now(), now() + interval '30 days', 1, e.ending, e.certainty, e.reason
     from n cross join lateral (select case when i <= ${2 * DEAD} then 'dead' else 'delivered' end as ending,
       case when i <= ${DEAD + DOUBTFUL} then 'unknown' when i <= ${2 * DEAD} then 'rejected' else 'delivered' end as certainty, case when i <= ${2 * DEAD} then 'gone' end as reason) e
     where i > ${DEAD}`,
    String(rows),
  )

for (const table of TABLES) await db.query(`alter table outbox.${table} set (autovacuum_enabled = off)`)

/** Statistics that make reading a whole table look cheap, and true ones. */
const STATISTICS: Record<string, () => Promise<void>> = {
  async 'of ten rows, and of a queue that was empty'() {
    await history(2_000)
    await db.query('delete from outbox.queue')
    await db.query('vacuum (analyze, truncate off) outbox.queue')
    await db.query('truncate outbox.delivery, outbox.attempt, outbox.receipt')
    await history(10)
    await db.query('delete from outbox.queue')
    await db.query('analyze outbox.delivery, outbox.attempt, outbox.receipt')
    await db.query('truncate outbox.delivery, outbox.attempt, outbox.receipt')
    await history(ENDED)
  },
  async 'that are true'() {
    for (const table of TABLES) await db.query(`analyze outbox.${table}`)
  },
}

/** Touches at most `limit` rows of any table or index, and none of the tables in `without`. */
async function bounded(what: string, work: (db: Executor) => Promise<unknown>, limit: number, without: string[] = []) {
  for (const { name, table, rows, pages } of await touchedBy(db, work)) {
    if (without.includes(table)) assert.equal(rows, 0, `${what} read ${rows} rows of ${name}`)
    assert.ok(rows <= limit, `${what} touched ${rows} rows of ${name} in ${pages} pages`)
  }
}

async function reads(query: string, values: string[], expected: number, limit: number, without: string[] = []) {
  let found = -1
  await bounded(
    query,
    async (executor) => {
      found = (await executor.run(query, values)).length
    },
    limit,
    without,
  )
  assert.equal(found, expected, query)
}

/** A table of one page is rather read as a whole than by its index, once for each open row. */
const FEW = DEAD * DEAD
const HISTORY = ['delivery', 'attempt', 'receipt']
const BESIDE = ['pollers', 'purges', 'operations', 'reconciliations', 'tombstones']

/** What `list` finds without reading what was delivered, and how much of it. */
const LISTS: [filter: ListFilter, found: number][] = [
  [{ state: 'open' }, DEAD],
  [{ state: 'waiting', limit: 5 }, 5],
  [{ state: 'blocked' }, 0],
  [{ state: 'dead' }, DEAD],
  [{ state: 'dead', before: '15', limit: 2 }, 2],
  [{ state: 'cancelled' }, 0],
  [{ state: 'delivered', limit: 5 }, 5],
  [{ certainty: 'unknown' }, 2 * DOUBTFUL],
  [{ certainty: 'unknown', state: 'dead' }, DOUBTFUL],
  [{ certainty: 'rejected' }, 2 * (DEAD - DOUBTFUL)],
  [{ certainty: 'not_attempted' }, 0],
  [{ reason: 'gone' }, DEAD],
  [{ reason: 'no_such_reason' }, 0],
  [{ endpoint: 'clinic', limit: 5 }, 5],
  [{ limit: 5 }, 5],
]

for (const [which, take] of Object.entries(STATISTICS)) {
  test(`no view reads the history to show a part of it, with statistics ${which}`, async () => {
    await take()
    for (const key of ['k5', 'k15', `k${ENDED}`]) {
      await reads('select * from outbox.deliveries where key = $1', [key], 1, 2 * DEAD)
      await reads('select * from outbox.attempts where key = $1', [key], 1, 2 * DEAD)
    }
    await reads('select * from outbox.deliveries where id = $1::text::bigint', ['15'], 1, 2 * DEAD)
    await reads('select * from outbox.dead', [], DEAD, 5 * DEAD)
    await reads('select * from outbox.dead order by ended_at desc limit 5', [], 5, 5 * DEAD)
    await reads('select * from outbox.backlog', [], 1, 5 * DEAD, HISTORY)
    await reads('select * from outbox.open', [], DEAD, FEW)
    await reads('select * from outbox.ended where id = $1::text::bigint', ['15'], 1, 2 * DEAD)
    await reads('select * from outbox.unknown', [], 2 * DOUBTFUL, FEW)
    await reads('select * from outbox.review', [], DEAD, FEW)
    await reads('select * from outbox.lanes', [], 1, FEW, HISTORY)
    await reads('select * from outbox.endpoints', [], 1, DEAD, [...HISTORY, 'queue'])
    for (const view of BESIDE)
      await reads(`select * from outbox.${view}`, [], view === 'operations' ? 1 : 0, DEAD, [...HISTORY, 'queue'])
  })

  test(`what is rare is listed without reading the history, with statistics ${which}`, async () => {
    for (const [filter, expected] of LISTS) {
      let found = -1
      const work = async (executor: Executor) => {
        found = (await list(executor, filter)).length
      }
      await bounded(JSON.stringify(filter), work, FEW)
      assert.equal(found, expected, JSON.stringify(filter))
    }
    await bounded('status', status, FEW)
  })
}

test('of a large backlog lanes reads one row a lane, and a page of a list no more than the page', async () => {
  await db.query(
    `insert into outbox.queue (delivery_id, next_attempt_at, endpoint_id, lane)
     select i, now(), (select id from outbox.endpoint), 1024 + i % 3 from generate_series(100, ${ENDED}) i`,
  )
  for (const analyzed of [false, true]) {
    if (analyzed) await db.query('analyze outbox.queue')
    await reads('select * from outbox.lanes', [], 3, 2 * DEAD, HISTORY)
    for (const filter of [{ limit: 5 }, { limit: 5, before: '9000' }])
      await bounded(
        `${JSON.stringify(filter)} of open`,
        (executor) => list(executor, { state: 'open', ...filter }),
        FEW,
      )
  }
})

test('the newest deliveries are listed by themselves, also while they are open and the queue is believed empty', async () => {
  await db.query('delete from outbox.queue')
  await db.query('vacuum (analyze, truncate off) outbox.queue')
  await db.query(
    `with r as (delete from outbox.receipt where delivery_id > ${ENDED / 2} returning delivery_id)
     insert into outbox.queue (delivery_id, next_attempt_at, endpoint_id, lane)
     select delivery_id, now(), (select id from outbox.endpoint), 1024 from r`,
  )
  await db.query('vacuum outbox.receipt')
  await bounded('the newest deliveries', (executor) => list(executor, { limit: 5 }), FEW)
  await reads('select * from outbox.deliveries order by id desc limit 5', [], 5, FEW)
  await bounded('the newest open ones', (executor) => list(executor, { state: 'open', limit: 5 }), FEW)
})

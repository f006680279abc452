import assert from 'node:assert/strict'
import { test } from 'node:test'
import { testDatabase } from '../support/database.ts'
import { addEndpoint } from '../support/ledger.ts'
import { touchedBy } from '../support/plan.ts'

const db = await testDatabase()
await addEndpoint(db)
const ENDED = 20_000
const DEAD = 10
const TABLES = ['delivery', 'attempt', 'receipt', 'queue']

/** A history of deliveries that have ended, `DEAD` of them dead, and as many that are open. */
const history = (rows: number) =>
  db.query(
    `with n as (select i from generate_series(1, $1::text::int) i), d as (
       insert into outbox.delivery (id, key, endpoint_id, lane, type, payload, payload_sha256, discovered_by, scheduled_at)
       overriding system value
       select i, 'k' || i, (select id from outbox.endpoint), 1024, 't', '{}', sha256('{}'), 'app', now() from n), a as (
       insert into outbox.attempt (delivery_id, number, token, started_at, finished_at, outcome, verdict, request_sent, poller)
       select i, 1, gen_random_uuid(), now(), now(), 'delivered', 'delivered', true, 'p' from n), q as (
       insert into outbox.queue (delivery_id, next_attempt_at, endpoint_id, lane)
       select i, now(), (select id from outbox.endpoint), 1024 from n where i <= ${DEAD})
     insert into outbox.receipt (delivery_id, ended_at, delete_after, attempts, ending, certainty, reason)
     select i, now(), now() + interval '30 days', 1, e.ending, e.certainty, e.reason
     from n cross join lateral (select case when i <= ${2 * DEAD} then 'dead' else 'delivered' end as ending,
       case when i <= ${2 * DEAD} then 'rejected' else 'delivered' end as certainty, case when i <= ${2 * DEAD} then 'gone' end as reason) e
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

async function reads(query: string, value: string | null, expected: number, limit: number, without: string[] = []) {
  let found = -1
  const touched = await touchedBy(db, async (executor) => {
    found = (await executor.run(query, value === null ? [] : [value])).length
  })
  assert.equal(found, expected, query)
  for (const { name, table, rows, pages } of touched) {
    if (without.includes(table)) assert.equal(rows, 0, `${query} read ${rows} rows of ${name}`)
    assert.ok(rows <= limit, `${query} touched ${rows} rows of ${name} in ${pages} pages`)
  }
}

for (const [which, take] of Object.entries(STATISTICS)) {
  test(`no view reads the history to show a part of it, with statistics ${which}`, async () => {
    await take()
    for (const key of ['k5', 'k15', `k${ENDED}`]) {
      await reads('select * from outbox.deliveries where key = $1', key, 1, 2 * DEAD)
      await reads('select * from outbox.attempts where key = $1', key, 1, 2 * DEAD)
    }
    await reads('select * from outbox.deliveries where id = $1::text::bigint', '15', 1, 2 * DEAD)
    await reads('select * from outbox.dead', null, DEAD, 5 * DEAD)
    await reads('select * from outbox.dead order by ended_at desc limit 5', null, 5, 5 * DEAD)
    await reads('select * from outbox.backlog', null, 1, 5 * DEAD, ['delivery', 'attempt', 'receipt'])
  })
}

// A large outbox in a few statements: open work and history by the hundred thousand.
import type { TestDatabase } from './database.ts'

export const ENDPOINTS = 40

/** All of one lane: class normal, partition 0. */
const LANE = 1024

const TABLES = ['delivery', 'queue', 'attempt', 'receipt'] as const

/** Nobody but the test takes statistics or cleans up. */
export async function quiet(db: TestDatabase): Promise<void> {
  for (const table of TABLES) await db.query(`alter table outbox.${table} set (autovacuum_enabled = off)`)
}

/** Endpoints 1 to `ENDPOINTS`, as a plain one is. */
export function addEndpoints(db: TestDatabase): Promise<unknown> {
  return db.query(
    `insert into outbox.endpoint (name, class, url, secret_ref, retry_delay_ms, backoff_factor, max_delay_ms, horizon_ms, key_window_ms,
       concurrency, partitions, on_dead, retention_days, allow_insecure, allow_private)
     select 'e' || i, 'c', 'https://e.test/', 'env:E', 300000, 1, 86400000, 259200000, 2592000000, 64, 1, 'block', 30, false, false
     from generate_series(1, ${ENDPOINTS}) i order by i`,
  )
}

/** Deliveries `from` to `to` of all endpoints in turn, the fact alone. */
export function addDeliveries(db: TestDatabase, from: number, to: number): Promise<unknown> {
  return db.query(
    `insert into outbox.delivery (id, key, endpoint_id, lane, type, payload, payload_sha256, payload_bytes, discovered_by, scheduled_at)
     overriding system value
     select i, 'k' || i, 1 + i % ${ENDPOINTS}, ${LANE}, 't', '{}', sha256('{}'), 2, 'app', now() from generate_series(${from}, ${to}) i`,
  )
}

/** Open work for these deliveries, due from `due` on, a millisecond after each other. */
export function addWork(db: TestDatabase, from: number, to: number, due: string): Promise<unknown> {
  return db.query(
    `insert into outbox.queue (delivery_id, next_attempt_at, endpoint_id, lane)
     select i, now() + $1::text::interval + (i - ${from}) * interval '1 millisecond', 1 + i % ${ENDPOINTS}, ${LANE}
     from generate_series(${from}, ${to}) i`,
    due,
  )
}

/** The even ones of the deliveries 1 to `heads` get an ordering key each, and behind them the even ones from `from` to `to` are parked in turn. */
export async function addParked(db: TestDatabase, from: number, to: number, heads: number): Promise<void> {
  await db.query(
    `update outbox.queue set ordering_key = 'o' || delivery_id % ${heads} where delivery_id <= ${heads} and delivery_id % 2 = 0`,
  )
  await db.query(
    `insert into outbox.queue (delivery_id, next_attempt_at, endpoint_id, lane, ordering_key)
     select i, 'infinity', 1 + i % ${ENDPOINTS}, ${LANE}, 'o' || i % ${heads}
     from generate_series(${from}, ${to}) i where i % 2 = 0`,
  )
}

/** Ends of these deliveries after one attempt; every fifth is dead. Past their `delete_after` are the first `purgeable`. */
export async function addEnds(db: TestDatabase, from: number, to: number, purgeable: number): Promise<void> {
  await db.query(
    `insert into outbox.attempt (delivery_id, number, token, started_at, finished_at, outcome, verdict, reason, request_sent, poller)
     select i, 1, '00000000-0000-0000-0000-000000000001', now(), now(), case when dead then 'rejected' else 'delivered' end,
       case when dead then 'dead' else 'delivered' end, case when dead then 'gone' end, true, 'p'
     from (select i, i % 5 = 0 as dead from generate_series(${from}, ${to}) i) n`,
  )
  await db.query(
    `insert into outbox.receipt (delivery_id, ended_at, delete_after, attempts, ending, certainty, reason)
     select i, now() - interval '1 day', now() + case when i < ${from + purgeable} then interval '-1 hour' else interval '30 days' end, 1,
       case when dead then 'dead' else 'delivered' end, case when dead then 'rejected' else 'delivered' end, case when dead then 'gone' end
     from (select i, i % 5 = 0 as dead from generate_series(${from}, ${to}) i) n`,
  )
}

/** Statistics of the queue as an idle moment leaves them: it had pages and no rows. */
export async function believeQueueEmpty(db: TestDatabase): Promise<void> {
  await db.query('truncate outbox.queue')
  await addWork(db, 1, 2_000, '1 hour')
  await db.query('delete from outbox.queue')
  await db.query('vacuum (analyze, truncate off) outbox.queue')
}

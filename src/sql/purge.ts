/** delivered | dead | cancelled → purged */
// Delete what is past its delete_after, with the deletion itself on record.
import type { Executor } from './executor.ts'

export interface Purged {
  readonly deliveries: number
  readonly attempts: number
  readonly tombstones: number
  readonly tombstonesExpired: number
}

// Only receipts are candidates and an open delivery has none; the look at the queue is the belt to those braces. It is a
// value, not NOT EXISTS: as a join to a queue that the planner believes empty it read the whole queue for each receipt.
const text = `
with victim as materialized (
  select r.*, d.key, d.payload_sha256
  from (
    select r.delivery_id, r.ending, r.certainty, r.attempts, r.ended_at, r.delete_after
    from outbox.receipt r
    where r.delete_after <= statement_timestamp()
      and (select q.delivery_id from outbox.queue q where q.delivery_id = r.delivery_id limit 1) is null
    order by r.delete_after
    limit $1::text::int
    for update skip locked) r
  left join lateral (select d.key, d.payload_sha256 from outbox.delivery d where d.id = r.delivery_id limit 1) d on true
), stale as materialized (
  select t.key_sha256 from outbox.tombstone t where t.delete_after <= statement_timestamp()
  order by t.delete_after limit $1::text::int for update skip locked
), d as (
  delete from outbox.delivery where id = any (array(select delivery_id from victim)) returning id
), a as (
  delete from outbox.attempt where delivery_id = any (array(select delivery_id from victim)) returning delivery_id
), r as (
  delete from outbox.receipt where delivery_id = any (array(select delivery_id from victim)) returning delivery_id
), x as (
  delete from outbox.tombstone where key_sha256 = any (array(select key_sha256 from stale)) returning key_sha256
), t as (
  insert into outbox.tombstone as o (key_sha256, payload_sha256, delivery_id, ending, certainty, attempts, ended_at, delete_after)
  select sha256(convert_to(v.key, 'UTF8')), v.payload_sha256, v.delivery_id, v.ending, v.certainty, v.attempts, v.ended_at,
         clock_timestamp() + $2::text::int * interval '1 day'
  from victim v where v.key is not null
  -- The key was used again after its old tombstone ran out: the new deletion counts.
  on conflict (key_sha256) do update
  set payload_sha256 = excluded.payload_sha256, delivery_id = excluded.delivery_id, ending = excluded.ending,
      certainty = excluded.certainty, attempts = excluded.attempts, ended_at = excluded.ended_at,
      deleted_at = clock_timestamp(), delete_after = excluded.delete_after
  returning delivery_id
), total as materialized (
  select (select count(*) from d) as deliveries, (select count(*) from a) as attempts, (select count(*) from t) as tombstones,
         (select count(*) from x) as tombstones_expired, (select min(delete_after) from victim) as oldest, (select max(delete_after) from victim) as newest
), run as (
  insert into outbox.purge_run as p (id, deliveries, attempts, tombstones, tombstones_expired, oldest_delete_after, newest_delete_after)
  select $3::text::uuid, n.deliveries, n.attempts, n.tombstones, n.tombstones_expired, n.oldest, n.newest
  from total n where n.deliveries + n.tombstones_expired > 0 or exists (select from victim)
  on conflict (id) do update
  set batches = p.batches + 1, finished_at = clock_timestamp(), deliveries = p.deliveries + excluded.deliveries,
      attempts = p.attempts + excluded.attempts, tombstones = p.tombstones + excluded.tombstones,
      tombstones_expired = p.tombstones_expired + excluded.tombstones_expired,
      oldest_delete_after = least(p.oldest_delete_after, excluded.oldest_delete_after),
      newest_delete_after = greatest(p.newest_delete_after, excluded.newest_delete_after)
)
select n.deliveries::int, n.attempts::int, n.tombstones::int, n.tombstones_expired::int as "tombstonesExpired" from total n`

/**
 * One bounded batch of a run. `runId` is a fresh UUID for the run: its batches add up in one row of `purge_run`, written
 * by the statement that deletes, so nothing vanishes unrecorded.
 */
export async function purge(
  db: Executor,
  { limit, tombstoneDays, runId }: { limit: number; tombstoneDays: number; runId: string },
): Promise<Purged> {
  const [row] = await db.run<Purged>(text, [String(limit), String(tombstoneDays), runId])
  return row as Purged
}

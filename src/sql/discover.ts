// Which lanes have open rows, and how long until the first row of each is due.
import type { Executor } from './executor.ts'
import { WALK } from './index-walk.ts'

export interface LaneRow {
  readonly endpoint_id: number
  readonly lane: number
  /** Milliseconds until the first row is due, at most a day; 0 or less: due now. Null: its endpoint is stopped, or nothing will be due. */
  readonly due_in_ms: number | null
  /** Its endpoint is paused, or backs off: nothing more is to be sent to it, leased or not. */
  readonly stopped: boolean
  /** Its endpoint was tripped until now: one delivery at a time is let through. */
  readonly half_open: boolean
  /** When the first row is due, as text: the same text twice means that nobody took it. */
  readonly head: string
  readonly timeout_ms: number | null
  readonly concurrency: number
  readonly partitions: number
}

// A loose index scan: one probe of the index a lane, however many rows the lane has.
const text = `
with recursive lane(endpoint_id, lane, first_due) as (
  (select q.endpoint_id, q.lane, q.next_attempt_at from outbox.queue q ${WALK}
   where (q.endpoint_id, q.lane) > ($1::text::int, $2::text::smallint)
   order by q.endpoint_id, q.lane, q.next_attempt_at limit 1)
  union all
  select n.endpoint_id, n.lane, n.next_attempt_at from lane l cross join lateral (
    select q.endpoint_id, q.lane, q.next_attempt_at from outbox.queue q ${WALK}
    where (q.endpoint_id, q.lane) > (l.endpoint_id, l.lane)
    order by q.endpoint_id, q.lane, q.next_attempt_at limit 1) n
), page as (select * from lane limit $3::text::int)
select p.endpoint_id, p.lane, p.first_due::text as head, e.stopped, e.half_open, e.timeout_ms, e.concurrency, e.partitions,
       case when e.open and isfinite(p.first_due)
         then (extract(epoch from least(greatest(p.first_due, statement_timestamp() - interval '1 day'),
                                        statement_timestamp() + interval '1 day') - statement_timestamp()) * 1000)::int
       end as due_in_ms
from page p cross join lateral (
  select e.timeout_ms, e.concurrency, e.partitions, e.paused_at is null
     and (e.backoff_until is null or e.backoff_until <= statement_timestamp())
     and (e.tripped_until is null or e.tripped_until <= statement_timestamp()) as open,
     e.paused_at is not null or coalesce(e.backoff_until > statement_timestamp(), false) as stopped, e.tripped_until is not null as half_open
  from outbox.endpoint e where e.id = p.endpoint_id limit 1) e`

/** A page of at most `limit` lanes after the one given, in order. */
export function discover(
  db: Executor,
  { afterEndpointId, afterLane, limit }: { afterEndpointId: number; afterLane: number; limit: number },
): Promise<LaneRow[]> {
  return db.run<LaneRow>(text, [String(afterEndpointId), String(afterLane), String(limit)])
}

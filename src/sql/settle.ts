/** leased → delivered | waiting | dead | blocked; parked → waiting */
// Write what a batch of attempts found, and what follows, in one statement, each under the token of its lease.
import type { Outcome, Verdict } from '../core/state.ts'
import { arrayLiteral, type Executor } from './executor.ts'
import { promotedAfter } from './promote.ts'

/** What one attempt found. Durations in milliseconds: the database makes the instants. */
export interface Observation {
  readonly deliveryId: string
  readonly number: number
  readonly token: string
  readonly outcome: Outcome
  readonly reason: string | null
  readonly httpStatus: number | null
  readonly phase: string
  readonly requestSent: boolean
  readonly targetHost: string | null
  readonly tookMs: number
  /** How long ago the attempt ended, when the statement is sent. */
  readonly agoMs: number
  readonly bytesOut: number
  readonly bytesIn: number
  readonly retryAfterMs: number | null
  readonly replayed: boolean
  /** The beginning of the response body, where the endpoint asks for it. */
  readonly excerpt: string | null
}

export interface Result extends Observation {
  readonly verdict: Verdict
  readonly delayMs: number
  /** Why the delivery ended or is blocked; null when it goes on or was plainly delivered. */
  readonly endReason: string | null
}

export interface Settled {
  readonly delivery_id: string
  readonly token: string
  /** What was written: `delivered` instead of what was asked when an earlier attempt is known to have been delivered. */
  readonly verdict: Verdict
}

// A subselect for a value is a probe of the index for each row; EXISTS may become one scan of all attempts.
const text = `
with input as materialized (
  select distinct on (i.delivery_id, i.token) i.*,
         case when i.asked <> 'delivered' and (
                select true from outbox.attempt a where a.delivery_id = i.delivery_id and a.outcome = 'delivered' limit 1)
              then 'delivered' else i.asked end as verdict
  from unnest($1::text::bigint[], $2::text::uuid[], $3::text::text[], $4::text::text[], $5::text::text[], $6::text::text[],
              $7::text::bigint[], $8::text::int[], $9::text::int[], $10::text::smallint[], $11::text::text[], $12::text::boolean[],
              $13::text::text[], $14::text::int[], $15::text::int[], $16::text::bigint[], $17::text::boolean[], $19::text::text[])
       as i(delivery_id, token, asked, outcome, reason, end_reason, delay_ms, took_ms, ago_ms, http_status, phase, request_sent,
            target_host, bytes_out, bytes_in, retry_after_ms, replayed, excerpt)
  order by i.delivery_id, i.token
), mine as materialized (
  select i.*, case when i.verdict = 'block' and q.ordering_key is null then 'dead' else i.verdict end as written,
         q.endpoint_id, q.ordering_key, q.attempts, q.maybe_applied_at,
         greatest(0, date_part('epoch', q.leased_at - q.ready_at) * 1000)::bigint as lag_ms,
         t.now - (i.ago_ms + i.took_ms) * interval '1 millisecond' as started_at,
         t.now - i.ago_ms * interval '1 millisecond' as finished_at, t.now
  from input i cross join lateral (
    select q.endpoint_id, q.ordering_key, q.attempts, q.maybe_applied_at, q.leased_at, q.ready_at from outbox.queue q
    where q.delivery_id = i.delivery_id and q.token = i.token
    for update) q
  cross join lateral (select clock_timestamp() as now offset 0) t
), observed as (
  insert into outbox.attempt (delivery_id, number, token, started_at, finished_at, lag_ms, outcome, verdict, reason, http_status, phase,
    request_sent, target_host, bytes_out, bytes_in, retry_after_ms, replayed, poller, excerpt)
  select m.delivery_id, m.attempts, m.token, m.started_at, m.finished_at, m.lag_ms, m.outcome, m.written, m.reason, m.http_status, m.phase,
         m.request_sent, m.target_host, m.bytes_out, m.bytes_in, m.retry_after_ms, m.replayed, $18::text, m.excerpt
  from mine m
  on conflict (delivery_id, number) do nothing
), receipted as (
  insert into outbox.receipt (delivery_id, ended_at, delete_after, attempts, ending, certainty, reason)
  select m.delivery_id, m.now, m.now + r.days * interval '1 day', m.attempts, m.written,
         case when m.written = 'delivered' then 'delivered'
              when m.maybe_applied_at is not null then 'unknown' else m.outcome end,
         case when m.written = 'delivered' and m.asked <> 'delivered' then 'late' else m.end_reason end
  from mine m cross join lateral (
    select coalesce(d.retention_days, (select e.retention_days from outbox.endpoint e where e.id = d.endpoint_id)) as days
    from outbox.delivery d where d.id = m.delivery_id limit 1) r
  where m.written in ('delivered', 'dead')
  on conflict (delivery_id) do nothing
), gone as (
  delete from outbox.queue where delivery_id = any (array(select delivery_id from mine where written in ('delivered', 'dead')))
), kept as materialized (
  select jsonb_object_agg(delivery_id::text, jsonb_build_array(finished_at + delay_ms * interval '1 millisecond', end_reason, case when outcome = 'unknown' then started_at end)) as by_id
  from mine where written in ('retry', 'block')
), again as (
  update outbox.queue q
  set next_attempt_at = greatest(clock_timestamp(), ((select by_id from kept) -> q.delivery_id::text ->> 0)::timestamptz),
      maybe_applied_at = coalesce(q.maybe_applied_at, ((select by_id from kept) -> q.delivery_id::text ->> 2)::timestamptz),
      lost = 0, token = null, leased_at = null, leased_by = null
  where q.delivery_id = any (array(select delivery_id from mine where written = 'retry'))
), blocked as (
  update outbox.queue q
  set next_attempt_at = 'infinity', blocked_reason = coalesce((select by_id from kept) -> q.delivery_id::text ->> 1, 'dead'),
      maybe_applied_at = coalesce(q.maybe_applied_at, ((select by_id from kept) -> q.delivery_id::text ->> 2)::timestamptz),
      lost = 0, token = null, leased_at = null, leased_by = null
  where q.delivery_id = any (array(select delivery_id from mine where written = 'block'))
), ${promotedAfter(`(select * from mine where written in ('delivered', 'dead'))`)}
select m.delivery_id::text, m.token::text, m.written as verdict from mine m
union all
-- Written before: the answer to that settle was lost.
select i.delivery_id::text, i.token::text, a.verdict
from input i cross join lateral (
  select a.verdict from outbox.attempt a
  where a.delivery_id = i.delivery_id and a.token = i.token and a.outcome = i.outcome and a.reason is distinct from 'worker_lost') a
where (select count(*) from mine) < (select count(*) from input)
  and i.delivery_id <> all (array(select delivery_id from mine))`

/**
 * Settle a batch. Returns what is settled, by this call or by an earlier one whose answer was lost; what is missing was fenced: its token is no longer the row's, nothing was
 * changed, and it goes to `late`.
 */
export function settle(db: Executor, results: readonly Result[], poller: string): Promise<Settled[]> {
  // Sorted, so that two batches that share rows lock them in one order.
  const batch = results.toSorted(
    (a, b) => a.deliveryId.length - b.deliveryId.length || (a.deliveryId < b.deliveryId ? -1 : 1),
  )
  const column = (of: (r: Result) => string | number | boolean | null) => arrayLiteral(batch.map(of))
  return db.run<Settled>(text, [
    column((r) => r.deliveryId),
    column((r) => r.token),
    column((r) => r.verdict),
    column((r) => r.outcome),
    column((r) => r.reason),
    column((r) => r.endReason),
    column((r) => r.delayMs),
    column((r) => r.tookMs),
    column((r) => r.agoMs),
    column((r) => r.httpStatus),
    column((r) => r.phase),
    column((r) => r.requestSent),
    column((r) => r.targetHost),
    column((r) => r.bytesOut),
    column((r) => r.bytesIn),
    column((r) => r.retryAfterMs),
    column((r) => r.replayed),
    poller,
    column((r) => r.excerpt),
  ])
}

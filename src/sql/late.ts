/** waiting | leased | blocked | dead | cancelled → delivered; parked → waiting */
// What a fenced attempt found is kept as evidence: the row that said unknown learns what happened; a late 2xx ends the delivery.
import { arrayLiteral, type Executor } from './executor.ts'
import { absorbing } from './mend.ts'
import type { Observation } from './settle.ts'

export interface Late {
  readonly delivery_id: string
  readonly number: number
  /** True when this result ended the delivery or corrected its receipt. */
  readonly delivered: boolean
}

// Only an attempt that is still unknown, under the same token, is changed: an observation, once made, stands.
const text = `
with input as materialized (
  select i.* from unnest($1::text::bigint[], $2::text::int[], $3::text::uuid[], $4::text::text[], $5::text::text[], $6::text::int[],
                         $7::text::int[], $8::text::smallint[], $9::text::text[], $10::text::boolean[], $11::text::text[],
                         $12::text::int[], $13::text::int[], $14::text::bigint[], $15::text::boolean[], $16::text::text[])
       as i(delivery_id, number, token, outcome, reason, took_ms, ago_ms, http_status, phase, request_sent, target_host,
            bytes_out, bytes_in, retry_after_ms, replayed, excerpt)
  order by i.delivery_id, i.number
), noted as (
  update outbox.attempt a
  set outcome = i.outcome, reason = i.reason, http_status = i.http_status, phase = i.phase, request_sent = i.request_sent,
      target_host = i.target_host, bytes_out = i.bytes_out, bytes_in = i.bytes_in, retry_after_ms = i.retry_after_ms,
      replayed = i.replayed, excerpt = i.excerpt, verdict = case when i.outcome = 'delivered' then 'delivered' else a.verdict end,
      started_at = clock_timestamp() - (i.ago_ms + i.took_ms) * interval '1 millisecond',
      finished_at = clock_timestamp() - i.ago_ms * interval '1 millisecond'
  from input i
  where a.delivery_id = any (array(select delivery_id from input)) and a.delivery_id = i.delivery_id and a.number = i.number
    and a.token = i.token and a.outcome = 'unknown'
  returning a.delivery_id, a.number, a.outcome
), proven as materialized (
  select delivery_id from noted where outcome = 'delivered'
), ${absorbing('proven')}
select n.delivery_id::text, n.number,
       n.delivery_id in (select delivery_id from absorbed) or n.delivery_id in (select delivery_id from upgraded) as delivered
from noted n`

// Exact or not at all: only where every attempt of the delivery is seen here, and none of those says unknown any more, or a
// later one is the first. An attempt that is written meanwhile makes the numbers differ, and the row stays as it is.
const certaintyText = `
with known as materialized (
  select w.delivery_id, count(*) as n, min(a.started_at) filter (where a.outcome = 'unknown') as maybe_applied_at,
         (array_agg(a.outcome order by a.number desc))[1] as last
  from unnest($1::text::bigint[]) as w(delivery_id) cross join lateral (
    select a.number, a.outcome, a.started_at from outbox.attempt a where a.delivery_id = w.delivery_id) a
  group by w.delivery_id
), opened as (
  update outbox.queue q set maybe_applied_at = (select k.maybe_applied_at from known k where k.delivery_id = q.delivery_id)
  where q.delivery_id = any (array(select k.delivery_id from known k)) and q.maybe_applied_at is not null
    and q.attempts - (q.token is not null)::int = (select k.n from known k where k.delivery_id = q.delivery_id)
)
update outbox.receipt r set certainty = (select k.last from known k where k.delivery_id = r.delivery_id)
where r.delivery_id = any (array(select k.delivery_id from known k where k.maybe_applied_at is null))
  and r.certainty = 'unknown' and r.attempts = (select k.n from known k where k.delivery_id = r.delivery_id)`

/**
 * Note up to 100 fenced results. Returns those whose attempt row was there to learn from them. One that says for certain
 * that nothing was applied takes back what the lost lease had to suppose.
 */
export async function late(db: Executor, results: readonly Observation[]): Promise<Late[]> {
  const noted = await note(db, results)
  const certain = results.filter(({ outcome }) => outcome === 'not_applied' || outcome === 'rejected')
  if (certain.length > 0) await db.run(certaintyText, [arrayLiteral(certain.map(({ deliveryId }) => deliveryId))])
  return noted
}

function note(db: Executor, results: readonly Observation[]): Promise<Late[]> {
  const column = (of: (r: Observation) => string | number | boolean | null) => arrayLiteral(results.map(of))
  return db.run<Late>(text, [
    column((r) => r.deliveryId),
    column((r) => r.number),
    column((r) => r.token),
    column((r) => r.outcome),
    column((r) => r.reason),
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
    column((r) => r.excerpt),
  ])
}

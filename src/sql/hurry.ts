/** waiting → waiting */
// For tests: the time that deliveries wait for has passed. Nothing else may call this: it breaks the promised pause.
import type { Executor } from './executor.ts'

const openEndpoint = `
    select from outbox.endpoint e
    where e.id = q.endpoint_id and e.paused_at is null
      and (e.backoff_until is null or e.backoff_until <= statement_timestamp())
      and e.tripped_until is null`

const surveyText = `
select (
  select count(*)::int from outbox.queue q
  where q.next_attempt_at <= statement_timestamp() and exists (${openEndpoint})
    and (q.ordering_key is null or not exists (
      select from outbox.queue h
      where h.endpoint_id = q.endpoint_id and h.ordering_key = q.ordering_key and h.delivery_id < q.delivery_id))
) as due, array_to_string(array(
  select p.name from outbox.poller p
  where p.name <> $1 and p.beat_at > statement_timestamp() - 3 * p.heartbeat_ms * interval '1 millisecond'
  order by p.name), ', ') as others`

/** How many deliveries a claim could take now, and the names of the live pollers beside this one. */
export async function survey(db: Executor, name: string): Promise<{ readonly due: number; readonly others: string }> {
  const [row] = await db.run<{ due: number; others: string }>(surveyText, [name])
  return row as { due: number; others: string }
}

// What the horizon and the key window are counted from moves with it, as it would if one really waited.
const hurryText = `
with freed as (
  update outbox.endpoint e set backoff_until = null, tripped_until = null, trip_ms = null, failures = 0, failing_since = null
  where $1::text::boolean and (e.backoff_until > statement_timestamp() or e.tripped_until is not null)
  returning e.id
), hurried as (
  update outbox.queue q
  set next_attempt_at = statement_timestamp(),
      first_attempt_at = q.first_attempt_at - (q.next_attempt_at - statement_timestamp()),
      maybe_applied_at = q.maybe_applied_at - (q.next_attempt_at - statement_timestamp())
  where q.token is null and isfinite(q.next_attempt_at) and q.next_attempt_at > statement_timestamp()
    and case when q.attempts > 0 then $1::text::boolean else $2::text::boolean end
  returning q.delivery_id
)
select (select count(*) from freed)::int + (select count(*) from hurried)::int as n`

/** Retries that wait, and with them the endpoints that back off, and first attempts that are scheduled: due now. Returns how many. */
export async function hurry(
  db: Executor,
  { retries, scheduled }: { retries: boolean; scheduled: boolean },
): Promise<number> {
  const [row] = await db.run<{ n: number }>(hurryText, [String(retries), String(scheduled)])
  return row?.n ?? 0
}

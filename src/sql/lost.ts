// A lease that ran out without a settle: its attempt may have been sent, so it goes on record as unknown.

/** CTE `lost`: an attempt for each row of `taken` (queue rows as they were) that still had a token. */
export const lostAttempts = (taken: string): string => `lost as (
  insert into outbox.attempt (delivery_id, number, token, started_at, finished_at, lag_ms, outcome, verdict, reason, poller)
  select l.delivery_id, l.attempts, l.token, l.leased_at, clock_timestamp(),
         greatest(0, date_part('epoch', l.leased_at - l.ready_at) * 1000)::bigint, 'unknown', 'retry', 'worker_lost', l.leased_by
  from ${taken} l where l.token is not null
  on conflict (delivery_id, number) do nothing
)`

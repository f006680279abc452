/** leased → waiting */
// Give leases back without charging the attempt: nothing was sent. A probe among them leaves its endpoint to the next one.
import { arrayLiteral, type Executor } from './executor.ts'

// Each id with its own token: one token covers all rows of its claim, and a stale lease must not give back a live one.
const text = `
with mine as materialized (
  select q.delivery_id, q.endpoint_id, l.probe
  from (select l.* from unnest($1::text::bigint[], $2::text::uuid[], $4::text::boolean[]) as l(delivery_id, token, probe) order by l.delivery_id) l
  cross join lateral (
    select q.delivery_id, q.endpoint_id from outbox.queue q where q.delivery_id = l.delivery_id and q.token = l.token for update) q
), gate as materialized (
  select e.id from outbox.endpoint e
  where e.id = any (array(select m.endpoint_id from mine m where m.probe)) and e.tripped_until is not null
  order by e.id
  for no key update skip locked
), left_to_others as (
  update outbox.endpoint e
  set tripped_until = least(e.tripped_until, clock_timestamp() + $3::text::int * interval '1 millisecond')
  where e.id = any (array(select g.id from gate g))
)
update outbox.queue q
set next_attempt_at = clock_timestamp() + $3::text::int * interval '1 millisecond', attempts = q.attempts - 1,
    first_attempt_at = case when q.attempts - 1 > q.base then q.first_attempt_at end,
    token = null, leased_at = null, leased_by = null
where q.delivery_id = any (array(select m.delivery_id from mine m))
returning q.delivery_id::text`

export interface Lease {
  readonly deliveryId: string
  readonly token: string
  /** It was let through alone, to see whether its endpoint works again. */
  readonly probe: boolean
}

/** Returns the ids that were given back; due again after `delayMs`, so that a fault of ours is no hot loop. */
export async function release(
  db: Executor,
  leases: readonly Lease[],
  { delayMs }: { delayMs: number },
): Promise<string[]> {
  const rows = await db.run<{ delivery_id: string }>(text, [
    arrayLiteral(leases.map((l) => l.deliveryId)),
    arrayLiteral(leases.map((l) => l.token)),
    String(delayMs),
    arrayLiteral(leases.map((l) => l.probe)),
  ])
  return rows.map((row) => row.delivery_id)
}

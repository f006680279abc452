/** parked → waiting */
// A row that has become the head of its ordering key is due: after the end of the row ahead, or by the sweep.
import type { Executor } from './executor.ts'
import { WALK } from './index-walk.ts'

// Never before its own schedule: a delayed follower keeps its time.
const due = (row: string): string => `greatest(clock_timestamp(), (
      select d.scheduled_at from outbox.delivery d where d.id = ${row}.delivery_id))`

/**
 * CTE `promoted`: the next row of the ordering key of each row in `ended` becomes due if it was parked. Never a row of
 * `ended` itself: what two data-modifying CTEs of one statement do to one row is done by either, and the other is skipped
 * without a word. `isfinite` is no condition for an index, so that the planner takes the primary key and walks no other index.
 */
export const promotedAfter = (ended: string): string => `promoted as (
  update outbox.queue q set next_attempt_at = ${due('q')}
  where not isfinite(q.next_attempt_at) and q.blocked_reason is null and q.delivery_id = any (array(
    select n.delivery_id from ${ended} g cross join lateral (
      select o.delivery_id, o.next_attempt_at, o.blocked_reason from outbox.queue o
      where o.endpoint_id = g.endpoint_id and o.ordering_key = g.ordering_key and o.delivery_id > g.delivery_id
        and o.delivery_id <> all (array(select delivery_id from ${ended} x))
      order by o.endpoint_id, o.ordering_key, o.delivery_id limit 1) n
    where g.ordering_key is not null and n.next_attempt_at = 'infinity' and n.blocked_reason is null))
)`

export interface Promoted {
  readonly promoted: number
  /** Ordering keys looked at; fewer than asked for: this was the last page. */
  readonly keys: number
  readonly last_endpoint_id: number | null
  readonly last_ordering_key: string | null
}

// Stragglers: parked behind a head whose end did not see them, because their transaction committed after it.
const text = `
with recursive k(endpoint_id, ordering_key, delivery_id) as (
  (select q.endpoint_id, q.ordering_key, q.delivery_id from outbox.queue q ${WALK}
   where q.next_attempt_at = 'infinity' and q.blocked_reason is null and (q.endpoint_id, q.ordering_key) > ($1::text::int, $2::text)
   order by q.endpoint_id, q.ordering_key, q.delivery_id limit 1)
  union all
  select n.endpoint_id, n.ordering_key, n.delivery_id from k cross join lateral (
    select q.endpoint_id, q.ordering_key, q.delivery_id from outbox.queue q ${WALK}
    where q.next_attempt_at = 'infinity' and q.blocked_reason is null
      and (q.endpoint_id, q.ordering_key) > (k.endpoint_id, k.ordering_key)
    order by q.endpoint_id, q.ordering_key, q.delivery_id limit 1) n
), page as materialized (
  select * from k limit $3::text::int
), head as materialized (
  select q.delivery_id
  from page p cross join lateral (
    select q.delivery_id from outbox.queue q
    where q.delivery_id = p.delivery_id and not isfinite(q.next_attempt_at) and q.blocked_reason is null
      and not exists (select from outbox.queue h
        where h.endpoint_id = p.endpoint_id and h.ordering_key = p.ordering_key and h.delivery_id < p.delivery_id)
    for no key update skip locked) q
), promoted as (
  update outbox.queue q set next_attempt_at = ${due('q')}
  where q.delivery_id = any (array(select delivery_id from head)) and not isfinite(q.next_attempt_at)
  returning q.delivery_id
)
select (select count(*)::int from promoted) as promoted, (select count(*)::int from page) as keys,
       l.endpoint_id as last_endpoint_id, l.ordering_key as last_ordering_key
from (select 1) x left join (
  select endpoint_id, ordering_key from page order by endpoint_id desc, ordering_key desc limit 1) l on true`

/** One page of ordering keys with parked rows, after the key given; the heads among them become due. */
export async function promote(
  db: Executor,
  after: { endpointId: number; orderingKey: string; keys: number },
): Promise<Promoted> {
  const [row] = await db.run<Promoted>(text, [String(after.endpointId), after.orderingKey, String(after.keys)])
  return row as Promoted
}

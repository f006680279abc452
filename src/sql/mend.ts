/** waiting | leased | blocked | dead | cancelled → delivered; parked → waiting */
// A delivery with a delivered attempt is delivered, whatever else was written about it.
import { arrayLiteral, type Executor } from './executor.ts'
import { lostAttempts } from './lost.ts'
import { promotedAfter } from './promote.ts'

/**
 * CTEs that end the deliveries in `proven` as delivered, unless somebody holds a live lease on them now (that attempt's
 * own settle sees the delivered one), and correct receipts that say otherwise.
 */
export const absorbing = (proven: string): string => `absorbed as (
  delete from outbox.queue q
  where q.delivery_id = any (array(select delivery_id from ${proven} p))
    and (q.token is null or q.next_attempt_at <= statement_timestamp())
  returning q.*
), ${lostAttempts('absorbed')}, receipted as (
  insert into outbox.receipt (delivery_id, ended_at, delete_after, attempts, ending, certainty, reason)
  select b.delivery_id, t.now, t.now + r.days * interval '1 day', b.attempts, 'delivered', 'delivered', 'late'
  from absorbed b cross join lateral (
    select coalesce(d.retention_days, (select e.retention_days from outbox.endpoint e where e.id = d.endpoint_id)) as days
    from outbox.delivery d where d.id = b.delivery_id limit 1) r
  cross join lateral (select clock_timestamp() as now offset 0) t
  on conflict (delivery_id) do nothing
), upgraded as (
  update outbox.receipt r
  set ending = 'delivered', certainty = 'delivered', reason = 'late, after ' || r.ending || coalesce(' (' || r.reason || ')', '')
  where r.delivery_id = any (array(select delivery_id from ${proven} p)) and r.ending <> 'delivered'
  returning r.delivery_id
), ${promotedAfter('absorbed')}`

const text = `
with proven as materialized (
  select w.delivery_id from unnest($1::text::bigint[]) as w(delivery_id)
  where (select true from outbox.attempt a where a.delivery_id = w.delivery_id and a.outcome = 'delivered' limit 1)
), ${absorbing('proven')}
select (select count(*)::int from absorbed) as absorbed, (select count(*)::int from upgraded) as upgraded`

export interface Mended {
  readonly absorbed: number
  readonly upgraded: number
}

/**
 * A late 200 and a settle as dead can overlap without seeing each other, whichever commits first. A statement of its own
 * after the commit of either sees both (case C02).
 */
export async function mend(db: Executor, deliveryIds: readonly string[]): Promise<Mended> {
  const [row] = await db.run<Mended>(text, [arrayLiteral(deliveryIds)])
  return row as Mended
}

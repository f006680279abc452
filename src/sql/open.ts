// The open deliveries of one endpoint, and the database's clock.
import { type Executor, iso } from './executor.ts'

/** Open deliveries of one endpoint, by what they wait for; the words are those of the view `backlog`. */
export interface OpenCounts {
  readonly total: number
  readonly due: number
  readonly leased: number
  readonly scheduled: number
  readonly parked: number
  readonly blocked: number
}

const text = `
select count(*)::int as total,
  (count(*) filter (where isfinite(q.next_attempt_at) and q.next_attempt_at <= statement_timestamp()))::int as due,
  (count(*) filter (where q.token is not null and q.next_attempt_at > statement_timestamp()))::int as leased,
  (count(*) filter (where q.token is null and isfinite(q.next_attempt_at) and q.next_attempt_at > statement_timestamp()))::int as scheduled,
  (count(*) filter (where q.next_attempt_at = 'infinity' and q.blocked_reason is null))::int as parked,
  (count(*) filter (where q.blocked_reason is not null))::int as blocked
from outbox.queue q where q.endpoint_id = $1::text::int`

export async function openCounts(db: Executor, endpointId: number): Promise<OpenCounts> {
  const [row] = await db.run<OpenCounts>(text, [String(endpointId)])
  return row as OpenCounts
}

/** The database's clock: as ISO text, and in epoch milliseconds. */
export async function clock(db: Executor): Promise<{ readonly at: string; readonly nowMs: number }> {
  const text = `select ${iso('t.now')} as at, (date_part('epoch', t.now) * 1000)::float8 as "nowMs" from (select clock_timestamp() as now) t`
  const [row] = await db.run<{ at: string; nowMs: number }>(text, [])
  return row as { at: string; nowMs: number }
}

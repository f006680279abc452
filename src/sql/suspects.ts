// What has to be tried alone and is due.
import { HEAD, open, suspect } from './claim.ts'
import type { Executor } from './executor.ts'

export interface Suspect {
  readonly delivery_id: string
  readonly endpoint_id: number
  readonly lane: number
  readonly overdue_ms: number
}

// Only rows with a loss are in the index queue_lost, and those are few.
const suspectsText = `
select q.delivery_id::text, q.endpoint_id, q.lane,
       least(2147483647, extract(epoch from statement_timestamp() - q.next_attempt_at) * 1000)::int as overdue_ms
from outbox.queue q
where q.lost > 0 and q.next_attempt_at <= statement_timestamp() and ${suspect} and ${HEAD} and ${open('q.endpoint_id', { probe: true })}
order by q.next_attempt_at
limit $1::text::int`

/** Due deliveries that have to be tried alone, the longest due first. */
export function suspects(db: Executor, { limit }: { limit: number }): Promise<Suspect[]> {
  return db.run<Suspect>(suspectsText, [String(limit)])
}

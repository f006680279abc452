/** leased → waiting */
// Give leases back without charging the attempt: nothing was sent.
import { arrayLiteral, type Executor } from './executor.ts'

const text = `
update outbox.queue q
set next_attempt_at = clock_timestamp() + $3::text::int * interval '1 millisecond', attempts = q.attempts - 1,
    first_attempt_at = case when q.attempts - 1 > q.base then q.first_attempt_at end,
    token = null, leased_at = null, leased_by = null
where q.delivery_id = any (array(select unnest($1::text::bigint[]))) and q.token = any ($2::text::uuid[])
returning q.delivery_id::text`

export interface Lease {
  readonly deliveryId: string
  readonly token: string
}

/** Returns the ids that were given back; due again after `delayMs`, so that a fault of ours is no hot loop. */
export async function release(
  db: Executor,
  leases: readonly Lease[],
  { delayMs }: { delayMs: number },
): Promise<string[]> {
  // Ids and tokens need not be paired: a token is never used twice.
  const rows = await db.run<{ delivery_id: string }>(text, [
    arrayLiteral(leases.map((l) => l.deliveryId)),
    arrayLiteral([...new Set(leases.map((l) => l.token))]),
    String(delayMs),
  ])
  return rows.map((row) => row.delivery_id)
}

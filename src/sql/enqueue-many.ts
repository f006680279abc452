/** nothing → waiting | parked */
// Many messages at once: one INSERT a table, the locks of all ordering keys taken in one order.
import type { Enqueued, EnqueueRow } from './enqueue.ts'
import { arrayLiteral, type Executor } from './executor.ts'

const text = `
select id::text, inserted, conflict, purged
from outbox.enqueue_many($1::text::text[], $2::text::text[], $3::text::text[], $4::text::text[], $5::text::text[], $6::text::text[],
  $7::text::text[], $8::text::text[], $9::text::text[], $10::text::text[], $11::text::text[], $12::text)
order by number`

const COLUMNS = [
  'endpoint',
  'key',
  'type',
  'payload',
  'orderingKey',
  'delayMs',
  'notBefore',
  'correlationId',
  'traceparent',
  'payloadRef',
  'retentionDays',
] as const satisfies readonly (keyof EnqueueRow)[]

/**
 * Write many deliveries; what became of each comes back in the order given. Never raises for a key that exists; one
 * message that is wrong raises 22023 for all of them.
 */
export function enqueueMany(
  db: Executor,
  messages: readonly EnqueueRow[],
  { discoveredBy = 'app' }: { readonly discoveredBy?: string } = {},
): Promise<Enqueued[]> {
  const columns = COLUMNS.map((name) => arrayLiteral(messages.map((message) => message[name])))
  return db.run<Enqueued>(text, [...columns, discoveredBy])
}

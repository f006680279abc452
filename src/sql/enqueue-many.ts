/** nothing → waiting | parked */
// Many messages at once: one INSERT a table, the locks of all ordering keys taken in one order.
import { type Enqueued, type EnqueueRow, enqueuedOf } from './enqueue.ts'
import { arrayLiteral, type Executor, type Value } from './executor.ts'
import { IN_TRANSACTION } from './in-transaction.ts'

const text = `
select id::text, inserted::text, conflict, purged::text
from outbox.enqueue_many($1::text::text[], $2::text::text[], $3::text::text[], $4::text::text[], $5::text::text[], $6::text::text[],
  $7::text::text[], $8::text::text[], $9::text::text[], $10::text::text[], $11::text::text[], $12::text)`

const ordered = `${text}
order by number`

const guarded = `${text}
where ${IN_TRANSACTION}
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

interface Options {
  readonly discoveredBy?: string
}

const valuesOf = (messages: readonly EnqueueRow[], { discoveredBy = 'app' }: Options): Value[] => [
  ...COLUMNS.map((name) => arrayLiteral(messages.map((message) => message[name]))),
  discoveredBy,
]

/**
 * Write many deliveries; what became of each comes back in the order given. Never raises for a key that exists; one
 * message that is wrong raises 22023 for all of them.
 */
export async function enqueueMany(
  db: Executor,
  messages: readonly EnqueueRow[],
  options: Options = {},
): Promise<Enqueued[]> {
  return (await db.run(ordered, valuesOf(messages, options))).map(enqueuedOf)
}

/** The same, or null and nothing written: see `inTransaction`. */
export async function enqueueManyGuarded(
  db: Executor,
  messages: readonly EnqueueRow[],
  options: Options = {},
): Promise<Enqueued[] | null> {
  const rows = await db.run(guarded, valuesOf(messages, options))
  return rows.length < messages.length ? null : rows.map(enqueuedOf)
}

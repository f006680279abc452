/** nothing → waiting | parked */
// The one way in: the same SQL function that psql, triggers and other languages call.
import { OutledgerError } from '../errors.ts'
import type { Executor, Value } from './executor.ts'
import { IN_TRANSACTION } from './in-transaction.ts'

const text = `
select id::text, inserted::text, conflict, purged::text
from outbox.enqueue($1::text, $2::text, $3::text, $4::text, $5::text, $6::text, $7::text, $8::text, $9::text, $10::text, $11::text)`

const guarded = `${text}
where ${IN_TRANSACTION}`

/** All values as text, as the SQL function takes them. */
export interface EnqueueRow {
  readonly endpoint: string
  readonly key: string
  readonly type: string
  readonly payload: Value
  readonly orderingKey: Value
  readonly delayMs: Value
  readonly notBefore: Value
  readonly correlationId: Value
  readonly traceparent: Value
  readonly payloadRef: Value
  readonly retentionDays: Value
}

export interface Enqueued {
  readonly id: string | null
  readonly inserted: boolean
  readonly conflict: 'endpoint' | 'type' | 'payload' | null
  readonly purged: boolean
}

/**
 * By place and as text: an app's client may rename columns, parse types in its own way, and have another word for null.
 *
 * @throws OutledgerError `unknown_client`: then nobody can say what was written
 */
export function enqueuedOf(row: object | undefined): Enqueued {
  const [id = null, inserted, conflict = null, purged] = Object.values(row ?? {})
  if ((inserted !== 'true' && inserted !== 'false') || (purged !== 'true' && purged !== 'false'))
    throw new OutledgerError(
      'unknown_client',
      'the client gave back no row as the database has sent it; rows must come as objects with their columns in order',
    )
  return { id, inserted: inserted === 'true', conflict, purged: purged === 'true' }
}

const valuesOf = (m: EnqueueRow): Value[] => [
  m.endpoint,
  m.key,
  m.type,
  m.payload,
  m.orderingKey,
  m.delayMs,
  m.notBefore,
  m.correlationId,
  m.traceparent,
  m.payloadRef,
  m.retentionDays,
]

/** Write one delivery. Never raises for a key that exists; raises 22023 with the field as column for bad input. */
export async function enqueue(db: Executor, message: EnqueueRow): Promise<Enqueued> {
  const [row] = await db.run(text, valuesOf(message))
  return enqueuedOf(row)
}

/** The same, or null and nothing written: see `inTransaction`. */
export async function enqueueGuarded(db: Executor, message: EnqueueRow): Promise<Enqueued | null> {
  const [row] = await db.run(guarded, valuesOf(message))
  return row === undefined ? null : enqueuedOf(row)
}

/** nothing → waiting | parked */
// The one way in: the same SQL function that psql, triggers and other languages call.
import type { Executor, Value } from './executor.ts'

const text = `
select id::text, inserted, conflict, purged
from outbox.enqueue($1::text, $2::text, $3::text, $4::text, $5::text, $6::text, $7::text, $8::text, $9::text, $10::text, $11::text)`

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

/** Write one delivery. Never raises for a key that exists; raises 22023 with the field as column for bad input. */
export async function enqueue(db: Executor, m: EnqueueRow): Promise<Enqueued> {
  const [row] = await db.run<Enqueued>(text, [
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
  ])
  return row as Enqueued
}

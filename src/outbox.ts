// Enqueue: check, serialise once, call the SQL function in the caller's transaction.
import { isDelayMs, isTraceparent, type Problem, payloadText, textProblem } from './core/message.ts'
import { didYouMean } from './core/option.ts'
import { OutledgerError } from './errors.ts'
import { type Enqueued, type EnqueueRow, enqueue as enqueueRow } from './sql/enqueue.ts'
import type { Executor, Value } from './sql/executor.ts'
import { anyExecutor, type Handle, transactionExecutor } from './transaction.ts'

/** One event for one endpoint. */
export interface Message {
  /** Idempotency key, stable for the life of the event and unique in the whole outbox: 1 to 255 of `A-Z a-z 0-9 . _ : -`. */
  readonly key: string
  /** Name of the endpoint. */
  readonly endpoint: string
  /** Event type, such as `payment.captured`: 1 to 200 printable ASCII characters. */
  readonly type: string
  /** Object or array, serialised once; or a string of JSON text, sent byte for byte. At most 256 KiB. */
  readonly payload?: object | string | undefined
  /** Instead of a payload: where the app keeps it. */
  readonly payloadRef?: string | undefined
  /** Deliveries of one ordering key go out one after the other. */
  readonly orderingKey?: string | undefined
  /** First attempt not before so many milliseconds from now. Excludes `notBefore`. */
  readonly delayMs?: number | undefined
  /** First attempt not before this instant: a Date, or text with a time zone. */
  readonly notBefore?: Date | string | undefined
  readonly correlationId?: string | undefined
  /** W3C trace context, sent along. */
  readonly traceparent?: string | undefined
  /** Days to keep the delivery after its end, instead of the endpoint's. */
  readonly retentionDays?: number | undefined
}

/** `inserted: false` with an id: the same event again, written before. `purged`: written, ended and purged before. */
export type EnqueueResult =
  | { readonly inserted: true; readonly id: string }
  | { readonly inserted: false; readonly id: string }
  | { readonly inserted: false; readonly id: null; readonly purged: true }

/**
 * Write a delivery in the caller's transaction: it is sent if and only if that transaction commits.
 *
 * @throws OutledgerError `not_a_transaction`, `invalid_message`, `unknown_endpoint`, or `key_conflict` when the key
 * exists with another endpoint, type or payload. A conflict is found without an error in the database, so the
 * transaction is still usable when it is caught.
 */
export async function enqueue(tx: Handle, message: Message): Promise<EnqueueResult> {
  return write(transactionExecutor(tx), message)
}

/** Write a delivery in a transaction of its own, for events that no business write stands behind. Takes the client itself. */
export async function enqueueStandalone(db: Handle, message: Message): Promise<EnqueueResult> {
  return write(anyExecutor(db), message)
}

async function write(db: Executor, message: Message): Promise<EnqueueResult> {
  const row = checked(message)
  const { id, inserted, conflict } = await enqueueRow(db, row).catch(refused)
  if (conflict !== null) throw keyConflict(row, conflict)
  if (id === null) return { inserted: false, id, purged: true }
  return inserted ? { inserted, id } : { inserted, id }
}

const FIELDS = [
  'key',
  'endpoint',
  'type',
  'payload',
  'payloadRef',
  'orderingKey',
  'delayMs',
  'notBefore',
  'correlationId',
  'traceparent',
  'retentionDays',
]

function checked(message: Message): EnqueueRow {
  if (typeof message !== 'object' || message === null) throw invalid({ field: 'message', problem: 'is not an object' })
  const { key, type, payloadRef, orderingKey, correlationId } = message
  for (const name of Object.keys(message)) {
    if (!FIELDS.includes(name))
      throw invalid({ field: `"${name}"`, problem: `is no field of a message${didYouMean(name, FIELDS)}` })
  }
  for (const field of ['key', 'type'] as const)
    if (message[field] === undefined) throw invalid({ field, problem: 'is missing' })
  const problem = textProblem({ key, type, payloadRef, orderingKey, correlationId }) ?? otherProblem(message)
  if (problem !== null) throw invalid(problem)
  const payload = payloadRef === undefined ? payloadText(message.payload) : null
  if (payload !== null && 'problem' in payload) throw invalid(payload)
  const text = (value: string | number | undefined): Value => (value === undefined ? null : String(value))
  return {
    endpoint: message.endpoint,
    key,
    type,
    payload: payload?.text ?? null,
    orderingKey: text(orderingKey),
    delayMs: text(message.delayMs),
    notBefore: text(message.notBefore instanceof Date ? message.notBefore.toISOString() : message.notBefore),
    correlationId: text(correlationId),
    traceparent: text(message.traceparent),
    payloadRef: text(payloadRef),
    retentionDays: text(message.retentionDays),
  }
}

function otherProblem({
  endpoint,
  payload,
  payloadRef,
  delayMs,
  notBefore,
  traceparent,
  retentionDays,
}: Message): Problem | null {
  if (typeof endpoint !== 'string' || endpoint.includes('\0'))
    return { field: 'endpoint', problem: 'is not the name of an endpoint' }
  if ((payload === undefined) === (payloadRef === undefined))
    return { field: 'payload', problem: 'or payloadRef must be given, and only one of them' }
  if (delayMs !== undefined && !isDelayMs(delayMs))
    return { field: 'delayMs', problem: `is ${delayMs}; it must be a whole number of milliseconds up to ten years` }
  if (delayMs !== undefined && notBefore !== undefined)
    return { field: 'delayMs', problem: 'and notBefore exclude each other: give one of them' }
  if (notBefore instanceof Date && Number.isNaN(notBefore.getTime()))
    return { field: 'notBefore', problem: 'is an invalid Date' }
  if (
    notBefore !== undefined &&
    !(notBefore instanceof Date) &&
    (typeof notBefore !== 'string' || notBefore.includes('\0'))
  )
    return { field: 'notBefore', problem: 'must be a Date, or text of a time with its time zone' }
  if (traceparent !== undefined && !isTraceparent(traceparent))
    return { field: 'traceparent', problem: 'must be the 55 characters of a W3C traceparent' }
  if (
    retentionDays !== undefined &&
    !(Number.isInteger(retentionDays) && retentionDays >= 0 && retentionDays <= 36_500)
  ) {
    return { field: 'retentionDays', problem: `is ${retentionDays}; it must be a whole number of days, 0 to 36500` }
  }
  return null
}

const invalid = ({ field, problem }: Problem) => new OutledgerError('invalid_message', `${field} ${problem}`)

const keyConflict = ({ key }: EnqueueRow, conflict: NonNullable<Enqueued['conflict']>) =>
  new OutledgerError(
    'key_conflict',
    `key ${key} exists with another ${conflict}; this event was not written. One event for one endpoint has one key: use another, such as ${key.slice(0, 200)}:2`,
  )

/** What the SQL function refuses says so in our words; any other error is the database's own: drizzle's would carry the payload. */
function refused(error: unknown): never {
  const cause = (error as { cause?: unknown }).cause ?? error
  const { code, message, column_name: field } = cause as { code?: string; message?: string; column_name?: string }
  if (code === '22023' && message?.startsWith('outledger: ')) {
    throw new OutledgerError(
      field === 'endpoint' ? 'unknown_endpoint' : 'invalid_message',
      message.slice('outledger: '.length),
    )
  }
  if (code === '42883' || code === '3F000' || code === '42P01')
    throw new OutledgerError('schema_missing', 'the outbox schema is missing here; run "outledger migrate"')
  throw cause
}

// What the app hands in, checked and turned into the text parameters of the SQL functions.
import { isDelayMs, isTraceparent, type Problem, payloadText, textProblem } from './core/message.ts'
import { didYouMean } from './core/option.ts'
import { OutledgerError } from './errors.ts'
import type { EnqueueRow } from './sql/enqueue.ts'
import type { Value } from './sql/executor.ts'

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

/** All fields as text, the payload serialised once. @throws OutledgerError `invalid_message`; `at` is said before the field */
export function checked(message: Message, at = ''): EnqueueRow {
  const invalid = ({ field, problem }: Problem) =>
    new OutledgerError('invalid_message', `${at === '' ? '' : `${at}: `}${field} ${problem}`)
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

/** Words of a date and a time that name no zone. */
const PLAIN =
  /(?<![a-z])(?:t|[ap]m|ad|bc|jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?|(?:mon|tues?|wed(?:nes)?|thu(?:rs?)?|fri|sat(?:ur)?|sun)(?:day)?|today|tomorrow|yesterday)(?![a-z])/gi

/** Another instant in every session, as its time zone is. What all else means, and whether it is a time, the database knows. */
const isLocal = (text: string): boolean => !/[a-z]|\+\d|[:\s][\d.:]{0,20}\s?-\d/i.test(text.replace(PLAIN, ' ').trim())

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
    (typeof notBefore !== 'string' || notBefore.includes('\0') || isLocal(notBefore))
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

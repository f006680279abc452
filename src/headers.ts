// The headers of one request, and its signatures: of a delivery and of a ping alike.
import { signatureHeader } from './core/signature.ts'
import type { Target } from './targets.ts'

/** What travels beside the body. */
export interface Envelope {
  readonly key: string
  readonly type: string
  readonly number: number
  readonly correlation_id: string | null
  readonly traceparent: string | null
}

/**
 * The body is the same on every attempt, and so is the key; what differs travels in headers.
 *
 * @param nowMs the database's clock: it dates the signature, and tells which previous secrets still sign
 */
export function headersOf(envelope: Envelope, target: Target, body: Buffer, nowMs: number): string[] {
  const timestamp = String(Math.floor(nowMs / 1000))
  const all = [
    ...target.headers,
    'idempotency-key',
    // A string of RFC 8941: no key has anything in it that would need escaping.
    target.endpoint.keyFormat === 'sf-string' ? `"${envelope.key}"` : envelope.key,
    'webhook-id',
    envelope.key,
    'webhook-timestamp',
    timestamp,
    'webhook-signature',
    signatureHeader(secretsAt(target, nowMs), envelope.key, timestamp, body),
    'outledger-type',
    envelope.type,
    'outledger-attempt',
    String(envelope.number),
  ]
  if (envelope.correlation_id !== null) all.push('outledger-correlation-id', envelope.correlation_id)
  if (envelope.traceparent !== null) all.push('traceparent', envelope.traceparent)
  return all
}

/** The current one first. */
function secretsAt({ secret, previous }: Target, nowMs: number): readonly Buffer[] {
  if (previous.length === 0) return [secret]
  return [secret, ...previous.filter(({ untilMs }) => untilMs > nowMs).map(({ bytes }) => bytes)]
}

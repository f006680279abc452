// One claimed delivery on its way: what is sent, and what the answer means for it.
import type { Sender, WireFacts } from './attempt.ts'
import { findingOf } from './core/classify.ts'
import { settlementOf } from './core/settlement.ts'
import { signatureHeader } from './core/signature.ts'
import { trialOf } from './core/trial.ts'
import type { AttemptEvent } from './events.ts'
import type { Pending } from './settler.ts'
import type { Claim } from './sql/claim.ts'
import type { BrokenTarget, Target } from './targets.ts'

/** A lease in this process: the proof, and the moments on the monotonic clock. */
export interface LeasedClaim {
  readonly claim: Claim
  readonly token: string
  /** Before the claim was sent, so the database's lease ends no earlier than `startedAt + lease_ms`. */
  readonly startedAt: number
  /** Add the monotonic clock to get the database's, in epoch milliseconds. */
  readonly clockOffsetMs: number
}

export type Ended =
  | { readonly kind: 'result'; readonly result: Pending & { readonly event: AttemptEvent } }
  | { readonly kind: 'release'; readonly reason: string }

const NOT_SENT = {
  requestSent: false,
  status: null,
  replayed: false,
  retryAfterMs: null,
  tookMs: 0,
  bytesOut: 0,
  bytesIn: 0,
} as const

/** Send one attempt and judge it. */
export async function attemptDelivery(
  sender: Sender,
  leased: LeasedClaim,
  target: Target | BrokenTarget,
  timeoutMs: number,
): Promise<Ended> {
  const { claim } = leased
  if (trialOf(claim.lost) === 'poison') return neverAgain(leased, target, 'poison')
  if ('problem' in target) return judged(leased, target, { ...NOT_SENT, phase: 'prepare', error: target.problem })
  if (claim.maybe_applied_ms !== null && claim.maybe_applied_ms > target.endpoint.keyWindowMs)
    return neverAgain(leased, target, 'key_window_passed')
  if (claim.payload === null) return { kind: 'release', reason: 'payload_unavailable' }
  const body = Buffer.from(claim.payload)
  const facts = await sender.send({
    url: target.url,
    headers: headersOf(leased, target, body),
    body,
    timeoutMs,
    allowPrivate: target.endpoint.allowPrivate,
  })
  return judged(leased, target, facts)
}

/** The body is the same on every attempt, and so is the key; what differs travels in headers. */
function headersOf({ claim, clockOffsetMs }: LeasedClaim, { headers, secrets }: Target, body: Buffer): string[] {
  const timestamp = String(Math.floor((performance.now() + clockOffsetMs) / 1000))
  const all = [
    ...headers,
    'idempotency-key',
    claim.key,
    'webhook-id',
    claim.key,
    'webhook-timestamp',
    timestamp,
    'webhook-signature',
    signatureHeader(secrets, claim.key, timestamp, body),
    'outledger-type',
    claim.type,
    'outledger-attempt',
    String(claim.number),
  ]
  if (claim.correlation_id !== null) all.push('outledger-correlation-id', claim.correlation_id)
  if (claim.traceparent !== null) all.push('traceparent', claim.traceparent)
  return all
}

function judged(leased: LeasedClaim, { endpoint, ...target }: Target | BrokenTarget, facts: WireFacts): Ended {
  const finding = findingOf(facts)
  const { verdict } = finding
  if (verdict === 'release') return { kind: 'release', reason: finding.reason ?? 'not_sent' }
  const { claim } = leased
  const standing = {
    used: claim.used,
    ageMs: claim.age_ms + facts.tookMs,
    keyed: claim.keyed,
    retryAfterMs: facts.retryAfterMs,
  }
  const settlement = settlementOf({ verdict, reason: finding.reason }, standing, endpoint, Math.random())
  return ended(leased, endpoint, 'url' in target ? target.url.host : null, facts, finding, settlement)
}

/** Perhaps applied, and not sent again by itself: too late to be recognised as a repetition, or the end of every process that tries. */
function neverAgain(leased: LeasedClaim, { endpoint, ...target }: Target | BrokenTarget, reason: string): Ended {
  const verdict = leased.claim.keyed && endpoint.onDead === 'block' ? 'block' : 'dead'
  const facts = { ...NOT_SENT, phase: 'prepare', error: reason } as const
  return ended(
    leased,
    endpoint,
    'url' in target ? target.url.host : null,
    facts,
    { outcome: 'unknown', reason },
    { verdict, delayMs: 0, endReason: reason },
  )
}

function ended(
  { claim, token }: LeasedClaim,
  endpoint: Target['endpoint'],
  targetHost: string | null,
  facts: WireFacts,
  { outcome, reason }: Pick<Pending, 'outcome' | 'reason'>,
  settlement: Pick<Pending, 'verdict' | 'delayMs' | 'endReason'>,
): Ended {
  const { key, type, number } = claim
  const { verdict, delayMs, endReason } = settlement
  const { tookMs, status: httpStatus } = facts
  return {
    kind: 'result',
    // Written out: spread objects cost a tenth of the poller's time.
    result: {
      deliveryId: claim.delivery_id,
      number,
      token,
      outcome,
      reason,
      verdict,
      delayMs,
      endReason,
      httpStatus,
      phase: facts.phase,
      requestSent: facts.requestSent,
      targetHost,
      tookMs,
      bytesOut: facts.bytesOut,
      bytesIn: facts.bytesIn,
      retryAfterMs: facts.retryAfterMs,
      replayed: facts.replayed,
      endedAt: performance.now(),
      agoMs: 0,
      event: {
        key,
        type,
        endpoint: endpoint.name,
        class: endpoint.class,
        number,
        outcome,
        verdict,
        reason,
        httpStatus,
        tookMs,
        lagMs: claim.lag_ms,
        correlationId: claim.correlation_id,
      },
    },
  }
}

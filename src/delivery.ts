// One claimed delivery on its way: what is sent, and what the answer means for it.
import type { Sender } from './attempt.ts'
import { RETRY_AFTER_LIMIT_MS, retryDelayMs } from './core/backoff.ts'
import { type Finding, findingOf } from './core/classify.ts'
import { excerptOf } from './core/excerpt.ts'
import { backoffMs, signOf } from './core/health.ts'
import { isExhausted, settlementOf } from './core/settlement.ts'
import { suspicionOf } from './core/suspicion.ts'
import type { AttemptEvent } from './events.ts'
import type { WireFacts } from './exchange.ts'
import { headersOf } from './headers.ts'
import type { Said } from './health.ts'
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
  /** Of a delivery by reference, once it is loaded; `changed`: it is not what was pinned. */
  readonly loaded?: Buffer | 'changed'
}

export type Ended =
  | { readonly kind: 'result'; readonly result: Pending & { readonly event: AttemptEvent } }
  | { readonly kind: 'release'; readonly reason: string }

const NOT_SENT = {
  requestSent: false,
  status: null,
  replayed: false,
  retryAfterMs: null,
  movedTo: null,
  keyProblem: false,
  tookMs: 0,
  bytesOut: 0,
  bytesIn: 0,
  body: null,
} as const

/** Send one attempt and judge it. */
export async function attemptDelivery(
  sender: Sender,
  leased: LeasedClaim,
  target: Target | BrokenTarget,
  timeoutMs: number,
): Promise<Ended> {
  const end = unsent(leased, target)
  if (end !== null) return end
  const { claim, loaded } = leased
  const { endpoint, url } = target as Target
  if (loaded === 'changed') return judged(leased, target, { ...NOT_SENT, phase: 'prepare', error: 'payload_changed' })
  if (loaded === undefined && claim.payload === null) return { kind: 'release', reason: 'payload_unavailable' }
  const body = loaded ?? Buffer.from(claim.payload as string)
  const facts = await sender.send({
    url,
    headers: headersOf(claim, target as Target, body, performance.now() + leased.clockOffsetMs),
    body,
    timeoutMs,
    allowPrivate: endpoint.allowPrivate,
    capture: endpoint.captureResponse,
  })
  return judged(leased, target, facts)
}

/** How it ends though nothing is sent, as far as that is known without its payload; null: it may be sent, and its target is whole. */
export function unsent(leased: LeasedClaim, target: Target | BrokenTarget): Ended | null {
  const { claim } = leased
  if (target.endpoint.removedAt !== null) return endpointRemoved(leased, target)
  // Changed between the claim and the look at its settings: the pause came too late for this one.
  if (target.endpoint.unreviewed !== null) return { kind: 'release', reason: 'endpoint_unreviewed' }
  if (suspicionOf(claim.lost) === 'poison') return neverAgain(leased, target, 'poison')
  if ('problem' in target) return judged(leased, target, { ...NOT_SENT, phase: 'prepare', error: target.problem })
  if (claim.maybe_applied_ms !== null && claim.maybe_applied_ms > target.endpoint.keyWindowMs)
    return neverAgain(leased, target, 'key_window_passed')
  if (waitsForReview(claim, target)) return neverAgain(leased, target, 'unknown_outcome')
  return null
}

/** An attempt of this budget may have been applied; whoever begins another one has looked at those before it. */
function waitsForReview({ maybe_applied_ms, age_ms, lost }: Claim, { endpoint }: Target): boolean {
  return endpoint.onUnknown === 'review' && maybe_applied_ms !== null && (lost > 0 || maybe_applied_ms <= age_ms)
}

function judged(leased: LeasedClaim, { endpoint, ...target }: Target | BrokenTarget, facts: WireFacts): Ended {
  const finding = findingOf(facts, 'policy' in target ? target.policy : undefined)
  const { outcome, verdict } = finding
  if (verdict === 'release') return { kind: 'release', reason: finding.reason ?? 'not_sent' }
  const { claim } = leased
  const standing = {
    used: claim.used,
    ageMs: claim.age_ms + facts.tookMs,
    keyed: claim.keyed,
    retryAfterMs: facts.retryAfterMs,
  }
  const settlement = settlementOf({ outcome, verdict, reason: finding.reason }, standing, endpoint, Math.random())
  const said = saidBy(leased, endpoint, facts, finding, isExhausted(standing, endpoint))
  return ended(leased, endpoint, 'url' in target ? target.url.host : null, facts, finding, settlement, said)
}

/** Its transaction was open while the endpoint was retired. Dead, not blocked: nobody will ever free what waits behind it. */
function endpointRemoved(leased: LeasedClaim, target: Target | BrokenTarget): Ended {
  const endpoint = { ...target.endpoint, onDead: 'skip' } as const
  return judged(leased, { ...target, endpoint }, { ...NOT_SENT, phase: 'prepare', error: 'endpoint_removed' })
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
    { ...saidBy(leased, endpoint, facts, { outcome: 'unknown', verdict: 'dead', reason }, false), sign: 'nothing' },
  )
}

function saidBy(
  { claim }: LeasedClaim,
  endpoint: Target['endpoint'],
  facts: WireFacts,
  finding: Finding,
  exhausted: boolean,
): Said {
  const sign = signOf(finding, facts.status)
  const { retryAfterMs, status } = facts
  return {
    endpointId: claim.endpoint_id,
    version: claim.endpoint_version,
    sign,
    backoffMs: backoffMs(finding, status, retryAfterMs, endpoint.retryDelayMs),
    standing: claim.standing,
    sparedMs: sign === 'success' ? 0 : retryDelayMs(endpoint, claim.used, retryAfterMs, Math.random()),
    exhausted,
  }
}

function ended(
  { claim, token }: LeasedClaim,
  endpoint: Target['endpoint'],
  targetHost: string | null,
  facts: WireFacts,
  { outcome, reason }: Pick<Pending, 'outcome' | 'reason'>,
  settlement: Pick<Pending, 'verdict' | 'delayMs' | 'endReason'>,
  said: Said,
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
      excerpt: facts.body === null ? null : excerptOf(facts.body),
      said,
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
        retryAfterCapped:
          verdict === 'retry' && facts.retryAfterMs !== null && facts.retryAfterMs > RETRY_AFTER_LIMIT_MS,
        lagMs: claim.lag_ms,
        correlationId: claim.correlation_id,
        probe: said.standing === 'probe',
      },
    },
  }
}

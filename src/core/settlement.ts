// What follows from a finding for this delivery: its budget, its horizon and its place in an ordering key.
import { type RetryPolicy, retryDelayMs } from './backoff.ts'
import type { Finding } from './classify.ts'
import type { Verdict } from './state.ts'

export interface SettlementPolicy extends RetryPolicy {
  readonly horizonMs: number
  readonly maxAttempts: number | null
  readonly onDead: 'block' | 'skip'
  readonly onUnknown: 'retry' | 'review'
}

/** Where the delivery stands when its attempt has ended. */
export interface Standing {
  /** Attempts of the current budget, this one included. */
  readonly used: number
  /** Since the start of the first attempt. */
  readonly ageMs: number
  readonly keyed: boolean
  readonly retryAfterMs: number | null
}

export interface Settlement {
  readonly verdict: Verdict
  /** Until the next attempt, 0 unless the verdict is `retry`. */
  readonly delayMs: number
  /** Why the delivery ended or is blocked; null while it goes on. */
  readonly endReason: string | null
}

/** Only a failing attempt ends a delivery: waiting, pauses and outages use up neither horizon nor budget by themselves. */
export function settlementOf(
  { outcome, verdict, reason }: Finding & { readonly verdict: Exclude<Finding['verdict'], 'release'> },
  standing: Standing,
  policy: SettlementPolicy,
  chance: number,
): Settlement {
  if (verdict === 'delivered') return { verdict, delayMs: 0, endReason: reason }
  // What follows a colon is a detail: deliveries that ended alike have one reason.
  if (verdict === 'dead') return ended(reason?.split(':', 1)[0] ?? 'dead', standing, policy)
  if (outcome === 'unknown' && policy.onUnknown === 'review') return ended('unknown_outcome', standing, policy)
  // Cut off by our own shutdown: the receiver did not fail and asked for no pause.
  if (reason === 'shutdown') return { verdict: 'retry', delayMs: 0, endReason: null }
  if (isExhausted(standing, policy)) return ended('exhausted', standing, policy)
  const delayMs = retryDelayMs(policy, standing.used, standing.retryAfterMs, chance)
  return { verdict: 'retry', delayMs, endReason: null }
}

/** No other attempt follows one that fails. */
export function isExhausted({ ageMs, used }: Standing, { horizonMs, maxAttempts }: SettlementPolicy): boolean {
  return ageMs > horizonMs || used >= (maxAttempts ?? Number.POSITIVE_INFINITY)
}

function ended(endReason: string, { keyed }: Standing, { onDead }: SettlementPolicy): Settlement {
  return { verdict: keyed && onDead === 'block' ? 'block' : 'dead', delayMs: 0, endReason }
}

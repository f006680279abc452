// What an attempt says of its endpoint, beside what it says of its delivery; and which rejections end theirs.
import type { Finding } from './classify.ts'

/**
 * `failure`: the endpoint did not work, as far as one attempt can tell. `rejection`: it refuses as if it were itself set up
 * wrongly, and would refuse every other delivery too. `gone`: it says that it will never take anything again.
 */
export type Sign = 'success' | 'failure' | 'rejection' | 'gone' | 'nothing'

/** It refuses this one as it would any other. */
export const isRejected = (sign: Sign): boolean => sign === 'rejection' || sign === 'gone'

/** Rejections in a row that end their deliveries and then pause the endpoint: one wrong secret must not end a backlog. */
export const REJECTIONS_LIMIT = 5

/** The circuit trips after so many failures in a row over at least so long: a restart of the receiver is shorter. */
export const TRIP = { failures: 20, overMs: 10_000, probeMs: 5_000 } as const

/** Answers to what is asked rather than to what is sent: another secret, another path, another host. */
const REJECTIONS = new Set([301, 308, 401, 403, 404])

/** Refused here, for what the endpoint is set up with: a host, a secret, a header. */
const REFUSED_HERE = new Set(['bad_config', 'blocked_address'])

/** It works, and asks for time: a pause of its own follows, or only this delivery waits. */
const NO_FAILURE = new Set([409, 429])

export function signOf({ outcome, verdict, reason }: Finding, status: number | null): Sign {
  if (outcome === 'delivered') return 'success'
  if (verdict === 'dead' && status === 410) return 'gone'
  if (verdict === 'dead' && (status === null ? REFUSED_HERE.has(reason ?? '') : REJECTIONS.has(status)))
    return 'rejection'
  const failed = verdict === 'retry' && outcome !== 'rejected' && reason !== 'shutdown'
  return failed && !(status !== null && NO_FAILURE.has(status)) ? 'failure' : 'nothing'
}

/** A 429 without Retry-After: so long, or the endpoint's own pause where that is shorter. */
const BACKOFF_MS = 60_000
/** What a receiver may ask for at most, as for one delivery. */
const BACKOFF_LIMIT_MS = 86_400_000

/** For how long the whole endpoint is left in peace: after a 429, and after a Retry-After that is not about one key (409). */
export function backoffMs(
  { verdict }: Pick<Finding, 'verdict'>,
  status: number | null,
  retryAfterMs: number | null,
  retryDelayMs: number,
): number {
  if (verdict !== 'retry' || status === 409) return 0
  const asked = Math.min(retryAfterMs ?? 0, BACKOFF_LIMIT_MS)
  return status === 429 && asked === 0 ? Math.min(retryDelayMs, BACKOFF_MS) : asked
}

/** What attempts that ended one after the other say of their endpoint, in a form that can be added to what is known. */
export interface Report {
  /** One of them was delivered: what was counted before that is void. */
  readonly succeeded: boolean
  /** Failures after the last success, or all of them. */
  readonly failures: number
  /** Index of the first of those failures; null: none. */
  readonly failingFrom: number | null
  /** Rejections before the first success, or all of them. */
  readonly lead: number
  /** The most in a row after it. */
  readonly peak: number
  /** Those after the last success, or all of them. */
  readonly tail: number
  readonly gone: boolean
}

export function reportOf(signs: readonly Sign[]): Report {
  const last = signs.lastIndexOf('success')
  const first = signs.indexOf('success')
  const rest = signs.slice(last + 1)
  const from = rest.indexOf('failure')
  let [peak, run] = [0, 0]
  for (const sign of first < 0 ? [] : signs.slice(first)) {
    if (sign === 'success') run = 0
    else if (isRejected(sign)) peak = Math.max(peak, ++run)
  }
  return {
    succeeded: last >= 0,
    failures: rest.filter((sign) => sign === 'failure').length,
    failingFrom: from < 0 ? null : last + 1 + from,
    lead: (first < 0 ? signs : signs.slice(0, first)).filter(isRejected).length,
    peak,
    tail: rest.filter(isRejected).length,
    gone: signs.includes('gone'),
  }
}

/** Which of them do not end their deliveries, for the endpoint is paused by those before: `known` were rejected in a row. */
export function spared(signs: readonly Sign[], known: number): boolean[] {
  let run = known
  return signs.map((sign) => {
    if (sign === 'success') run = 0
    if (!isRejected(sign)) return false
    run++
    return run > REJECTIONS_LIMIT
  })
}

// When the next attempt is due, as a duration; the database turns it into an instant.

export interface RetryPolicy {
  readonly retryDelayMs: number
  readonly backoffFactor: number
  readonly maxDelayMs: number
}

/** What a receiver may ask for at most, 24 h: a header cannot park a delivery for years. */
export const RETRY_AFTER_LIMIT_MS = 86_400_000

const JITTER = 0.1

/**
 * Delay before the next attempt in whole milliseconds. Never shorter than the policy's or the receiver's wish:
 * jitter (`chance`, 0 to 1) only adds, up to 10 %, so that a crowd that failed together does not come back together.
 *
 * @param used attempts of the current budget so far, 1 or more
 */
export function retryDelayMs(policy: RetryPolicy, used: number, retryAfterMs: number | null, chance: number): number {
  // Clamped before it is multiplied out: 2 ** 5000 is infinite, and infinity times no delay at all is no number.
  const growth = Math.min(policy.backoffFactor ** Math.max(used - 1, 0), Number.MAX_VALUE)
  const own = Math.min(policy.retryDelayMs * growth, Math.max(policy.maxDelayMs, policy.retryDelayMs))
  const wanted = Math.max(own, Math.min(retryAfterMs ?? 0, RETRY_AFTER_LIMIT_MS))
  return Math.ceil(wanted * (1 + JITTER * Math.min(Math.max(chance, 0), 1)))
}

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type RetryPolicy, retryDelayMs } from '../../src/core/backoff.ts'

const HOUR = 3_600_000
const DAY = 24 * HOUR
const FIVE_MINUTES = 300_000

const fixed: RetryPolicy = { retryDelayMs: FIVE_MINUTES, backoffFactor: 1, maxDelayMs: DAY }
const policy = (given: Partial<RetryPolicy>): RetryPolicy => ({ ...fixed, ...given })

type Given = readonly [policy: RetryPolicy, used: number, retryAfterMs: number | null]

/** Without jitter: the least that the delay may be. */
const rows: readonly (readonly [why: string, given: Given, wanted: number])[] = [
  ['first retry of the default policy: five minutes', [fixed, 1, null], FIVE_MINUTES],
  ['fixed means fixed, however many attempts there were', [fixed, 900, null], FIVE_MINUTES],
  ['backoff starts with the plain delay', [policy({ backoffFactor: 2 }), 1, null], FIVE_MINUTES],
  ['backoff doubles', [policy({ backoffFactor: 2 }), 4, null], 8 * FIVE_MINUTES],
  ['a factor need not be whole', [policy({ backoffFactor: 1.5 }), 3, null], 675_000],
  ['backoff stops at maxDelayMs', [policy({ backoffFactor: 2, maxDelayMs: HOUR }), 5, null], HOUR],
  ['2 ** 70 times five minutes is maxDelayMs', [policy({ backoffFactor: 2 }), 71, null], DAY],
  ['more attempts than a double has exponents', [policy({ backoffFactor: 10 }), 2_000_000_000, null], DAY],
  ['an absurd factor', [policy({ backoffFactor: Number.MAX_VALUE }), 3, null], DAY],
  ['an infinite factor', [policy({ backoffFactor: Number.POSITIVE_INFINITY }), 2, null], DAY],
  ['no attempt so far counts as the first', [policy({ backoffFactor: 10 }), 0, null], FIVE_MINUTES],
  ['a negative number of attempts', [policy({ backoffFactor: 10 }), -3, null], FIVE_MINUTES],
  ['a delay of nothing stays nothing', [policy({ retryDelayMs: 0, backoffFactor: 2 }), 9, null], 0],
  ['and does not become the longest one', [policy({ retryDelayMs: 0, backoffFactor: 10 }), 400, null], 0],
  ['maxDelayMs bounds the growth, not the delay itself', [policy({ maxDelayMs: 1_000 }), 3, null], FIVE_MINUTES],
  ['a receiver may ask for more', [fixed, 1, HOUR], HOUR],
  ['and cannot ask for less', [fixed, 1, 60_000], FIVE_MINUTES],
  ['nor for nothing', [fixed, 1, 0], FIVE_MINUTES],
  ['what the receiver asks for may exceed maxDelayMs', [policy({ maxDelayMs: HOUR }), 1, 2 * HOUR], 2 * HOUR],
  ['but not 24 hours', [fixed, 1, DAY + 1], DAY],
  ['ten years are 24 hours', [fixed, 1, 3_650 * DAY], DAY],
  ['so is an endless number', [fixed, 1, Number.POSITIVE_INFINITY], DAY],
  ['a policy of more than 24 hours holds', [policy({ retryDelayMs: 3 * DAY, maxDelayMs: 3 * DAY }), 1, DAY], 3 * DAY],
]

for (const [why, [given, used, retryAfterMs], wanted] of rows) {
  test(`retry delay: ${why}`, () => {
    assert.equal(retryDelayMs(given, used, retryAfterMs, 0), wanted)
  })
}

// case C27
test('chance only lengthens a delay, by at most 10 %, and never shortens it', () => {
  for (const [why, [given, used, retryAfterMs], least] of rows) {
    let before = least
    for (const chance of [0, 0.001, 0.25, 0.5, 0.75, 0.999_999_999]) {
      const delay = retryDelayMs(given, used, retryAfterMs, chance)
      assert.ok(Number.isSafeInteger(delay), `${why}: ${delay} is no whole number`)
      assert.ok(delay >= before && delay <= Math.ceil(least * 1.1), `${why}: ${delay} for chance ${chance}`)
      before = delay
    }
    assert.ok(least === 0 || before > least, `${why}: no jitter at all`)
  }
})

test('a chance outside 0 to 1 is taken as the nearest', () => {
  assert.equal(retryDelayMs(fixed, 1, null, -5), retryDelayMs(fixed, 1, null, 0))
  assert.equal(retryDelayMs(fixed, 1, null, 5), retryDelayMs(fixed, 1, null, 1))
})

// case C27
test('a crowd that failed in one instant comes back spread over a window that starts at five minutes', () => {
  const delays = Array.from({ length: 10_000 }, (_, i) => retryDelayMs(fixed, 1, null, i / 10_000))
  assert.equal(Math.min(...delays), FIVE_MINUTES)
  const perSecond = new Map<number, number>()
  for (const delay of delays)
    perSecond.set(Math.floor(delay / 1000), (perSecond.get(Math.floor(delay / 1000)) ?? 0) + 1)
  assert.ok(Math.max(...perSecond.values()) <= 400, 'spread over 30 seconds, none holds more than 4 % of them')
})

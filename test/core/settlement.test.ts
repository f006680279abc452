import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Settlement, type SettlementPolicy, type Standing, settlementOf } from '../../src/core/settlement.ts'

const HOUR = 3_600_000
const policy: SettlementPolicy = {
  retryDelayMs: 300_000,
  backoffFactor: 1,
  maxDelayMs: 24 * HOUR,
  horizonMs: 72 * HOUR,
  maxAttempts: null,
  onDead: 'block',
  onUnknown: 'retry',
}
const standing: Standing = { used: 1, ageMs: 20_000, keyed: false, retryAfterMs: null }

type Finding = Parameters<typeof settlementOf>[0]
const delivered: Finding = { outcome: 'delivered', verdict: 'delivered', reason: null }
const failed: Finding = { outcome: 'unknown', verdict: 'retry', reason: 'http_503' }
const refused: Finding = { outcome: 'not_applied', verdict: 'retry', reason: 'http_429' }
const rejected: Finding = { outcome: 'rejected', verdict: 'dead', reason: 'gone' }
const cut: Finding = { outcome: 'unknown', verdict: 'retry', reason: 'shutdown' }
const REVIEWED: Settlement = { verdict: 'dead', delayMs: 0, endReason: 'unknown_outcome' }

const RETRY: Settlement = { verdict: 'retry', delayMs: 300_000, endReason: null }
const EXHAUSTED: Settlement = { verdict: 'dead', delayMs: 0, endReason: 'exhausted' }

type Row = readonly [
  why: string,
  given: { finding: Finding; at?: Partial<Standing>; under?: Partial<SettlementPolicy> },
  wanted: Settlement,
]

const rows: readonly Row[] = [
  ['delivered', { finding: delivered }, { verdict: 'delivered', delayMs: 0, endReason: null }],
  [
    'delivered by a replay, which is kept as the reason',
    { finding: { ...delivered, reason: 'replayed' } },
    { verdict: 'delivered', delayMs: 0, endReason: 'replayed' },
  ],
  [
    'delivered after the horizon and the last attempt is still delivered',
    { finding: delivered, at: { ageMs: 900 * HOUR, used: 50 }, under: { maxAttempts: 1 } },
    { verdict: 'delivered', delayMs: 0, endReason: null },
  ],
  ['a failure is retried in five minutes', { finding: failed }, RETRY],
  ['at the horizon to the millisecond it is still retried', { finding: failed, at: { ageMs: 72 * HOUR } }, RETRY],
  ['a failure after the horizon ends it', { finding: failed, at: { ageMs: 72 * HOUR + 1 } }, EXHAUSTED],
  ['without maxAttempts no number of attempts ends it', { finding: failed, at: { used: 1_000_000 } }, RETRY],
  // case C85
  ['before the last attempt', { finding: failed, at: { used: 2 }, under: { maxAttempts: 3 } }, RETRY],
  ['the last attempt', { finding: failed, at: { used: 3 }, under: { maxAttempts: 3 } }, EXHAUSTED],
  [
    'past the last attempt, after the limit was lowered',
    { finding: failed, at: { used: 9 }, under: { maxAttempts: 3 } },
    EXHAUSTED,
  ],
  ['a single attempt', { finding: failed, under: { maxAttempts: 1 } }, EXHAUSTED],
  ['an unknown outcome that a person must look at', { finding: failed, under: { onUnknown: 'review' } }, REVIEWED],
  ['cut by our shutdown, for a person to look at', { finding: cut, under: { onUnknown: 'review' } }, REVIEWED],
  ['what is known for certain needs no person', { finding: refused, under: { onUnknown: 'review' } }, RETRY],
  [
    'an unknown outcome of an ordering key that blocks',
    { finding: failed, at: { keyed: true }, under: { onUnknown: 'review' } },
    { ...REVIEWED, verdict: 'block' },
  ],
  [
    'moved to a host: one reason for all that moved',
    { finding: { outcome: 'not_applied', verdict: 'dead', reason: 'moved_permanently:new.example' } },
    { verdict: 'dead', delayMs: 0, endReason: 'moved_permanently' },
  ],
  ['rejected', { finding: rejected }, { verdict: 'dead', delayMs: 0, endReason: 'gone' }],
  [
    'rejected without a reason',
    { finding: { ...rejected, reason: null } },
    { verdict: 'dead', delayMs: 0, endReason: 'dead' },
  ],
  [
    'rejected on the last attempt keeps its own reason',
    { finding: rejected, at: { used: 3 }, under: { maxAttempts: 3 } },
    { verdict: 'dead', delayMs: 0, endReason: 'gone' },
  ],
  [
    'the rejected head of an ordering key blocks it',
    { finding: rejected, at: { keyed: true } },
    { verdict: 'block', delayMs: 0, endReason: 'gone' },
  ],
  [
    'the exhausted head of an ordering key blocks it',
    { finding: failed, at: { keyed: true, ageMs: 73 * HOUR } },
    { verdict: 'block', delayMs: 0, endReason: 'exhausted' },
  ],
  [
    'under skip the key goes on',
    { finding: rejected, at: { keyed: true }, under: { onDead: 'skip' } },
    { verdict: 'dead', delayMs: 0, endReason: 'gone' },
  ],
  ['a failing head of an ordering key is retried', { finding: failed, at: { keyed: true } }, RETRY],
  // case C34
  [
    'without an ordering key nothing is blocked',
    { finding: rejected, under: { onDead: 'block' } },
    { verdict: 'dead', delayMs: 0, endReason: 'gone' },
  ],
  // case C56
  ['the receiver asks for an hour', { finding: failed, at: { retryAfterMs: HOUR } }, { ...RETRY, delayMs: HOUR }],
  ['the receiver asks for a second', { finding: failed, at: { retryAfterMs: 1_000 } }, RETRY],
  [
    'backoff counts the attempts of this budget',
    { finding: failed, at: { used: 3 }, under: { backoffFactor: 2 } },
    { ...RETRY, delayMs: 1_200_000 },
  ],
  ['cut off by our own shutdown: at once', { finding: cut }, { ...RETRY, delayMs: 0 }],
  [
    'our own shutdown exhausts nothing',
    { finding: cut, at: { used: 3, ageMs: 73 * HOUR }, under: { maxAttempts: 3 } },
    { ...RETRY, delayMs: 0 },
  ],
  [
    'a receiver that waits for nothing is not asked about it',
    { finding: cut, at: { used: 7 }, under: { backoffFactor: 10 } },
    { ...RETRY, delayMs: 0 },
  ],
]

for (const [why, { finding, at, under }, wanted] of rows) {
  test(`settlement: ${why}`, () => {
    assert.deepEqual(settlementOf(finding, { ...standing, ...at }, { ...policy, ...under }, 0), wanted)
  })
}

test('chance lengthens a retry and nothing else', () => {
  for (const [, { finding, at, under }, wanted] of rows) {
    const { delayMs, ...rest } = settlementOf(finding, { ...standing, ...at }, { ...policy, ...under }, 0.5)
    assert.deepEqual({ delayMs, ...rest }, { ...wanted, delayMs: Math.ceil(wanted.delayMs * 1.05) })
  }
})

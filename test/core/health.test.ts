import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Finding } from '../../src/core/classify.ts'
import { backoffMs, type Report, reportOf, type Sign, signOf, spared } from '../../src/core/health.ts'
import type { Outcome } from '../../src/core/state.ts'

const finding = (outcome: Outcome, verdict: Finding['verdict'], reason: string | null = null): Finding => ({
  ...{ outcome, verdict, reason },
})

const signs: readonly (readonly [why: string, given: Finding, status: number | null, wanted: Sign])[] = [
  ['a delivery', finding('delivered', 'delivered'), 200, 'success'],
  ['a 500', finding('unknown', 'retry'), 500, 'failure'],
  ['a timeout', finding('unknown', 'retry'), null, 'failure'],
  ['a refused connection', finding('not_applied', 'retry'), null, 'failure'],
  ['a 302', finding('unknown', 'retry'), 302, 'failure'],
  ['a 429, which has a pause of its own', finding('not_applied', 'retry'), 429, 'nothing'],
  ['a 409: the key is at work', finding('unknown', 'retry'), 409, 'nothing'],
  ['our own shutdown', finding('unknown', 'retry', 'shutdown'), null, 'nothing'],
  ['a fault of ours', finding('not_applied', 'release'), null, 'nothing'],
  ...[301, 308, 401, 403, 404].map(
    (status) => [`a ${status}`, finding('rejected', 'dead'), status, 'rejection'] as const,
  ),
  ['a 410', finding('rejected', 'dead'), 410, 'gone'],
  ['a 404 that a policy has tried again', finding('rejected', 'retry'), 404, 'nothing'],
  ['a 422, which is about this delivery', finding('rejected', 'dead'), 422, 'nothing'],
  ['a blocked address', finding('not_applied', 'dead'), null, 'nothing'],
]
for (const [why, given, status, wanted] of signs)
  test(`sign: ${why} is ${wanted}`, () => assert.equal(signOf(given, status), wanted))

const MINUTE = 60_000
const backoffs: readonly (readonly [why: string, status: number, retryAfterMs: number | null, wanted: number])[] = [
  ['a 429 with Retry-After', 429, 7_000, 7_000],
  ['a 429 without', 429, null, MINUTE],
  ['a 503 with Retry-After', 503, 7_000, 7_000],
  ['a 503 without', 503, null, 0],
  ['a 409 with Retry-After, which is about this key', 409, 7_000, 0],
  ['ten years', 429, 315_360_000_000, 86_400_000],
]
for (const [why, status, retryAfterMs, wanted] of backoffs)
  test(`backoff: ${why}`, () => assert.equal(backoffMs({ verdict: 'retry' }, status, retryAfterMs, 300_000), wanted))

test('backoff: a pause shorter than a minute is the endpoint’s own, and what ends a delivery asks for none', () => {
  assert.equal(backoffMs({ verdict: 'retry' }, 429, null, 2_000), 2_000)
  assert.equal(backoffMs({ verdict: 'dead' }, 401, 7_000, 2_000), 0)
})

const LETTERS: Record<string, Sign> = { S: 'success', F: 'failure', R: 'rejection', G: 'gone', _: 'nothing' }
const signsOf = (letters: string) => [...letters].map((letter) => LETTERS[letter] as Sign)
const NOTHING: Report = {
  ...{ succeeded: false, failures: 0, failingFrom: null, lead: 0, peak: 0, tail: 0, gone: false },
}

const reports: readonly (readonly [letters: string, wanted: Partial<Report>])[] = [
  ['', {}],
  ['_', {}],
  ['FF_F', { failures: 3, failingFrom: 0 }],
  ['_F', { failures: 1, failingFrom: 1 }],
  ['FFS', { succeeded: true }],
  ['FSF', { succeeded: true, failures: 1, failingFrom: 2 }],
  ['FS_FSFF', { succeeded: true, failures: 2, failingFrom: 5 }],
  ['RR', { lead: 2, tail: 2 }],
  ['RFR', { failures: 1, failingFrom: 1, lead: 2, tail: 2 }],
  ['RRS', { succeeded: true, lead: 2 }],
  ['RSRRSR', { succeeded: true, lead: 1, peak: 2, tail: 1 }],
  ['RSR_RR', { succeeded: true, lead: 1, peak: 3, tail: 3 }],
  ['RG', { lead: 2, tail: 2, gone: true }],
  ['GS', { succeeded: true, lead: 1, gone: true }],
]
for (const [letters, wanted] of reports)
  test(`report of ${letters || 'nothing'}`, () =>
    assert.deepEqual(reportOf(signsOf(letters)), { ...NOTHING, ...wanted }))

const cases: readonly (readonly [letters: string, known: number, wanted: string])[] = [
  ['RRRRRRR', 0, '-----PP'],
  ['RRR', 3, '--P'],
  ['RRR', 9, 'PPP'],
  ['RRGSRRRRRR', 4, '-PP------P'],
  ['_FR', 5, '--P'],
]
for (const [letters, known, wanted] of cases)
  test(`after ${known} rejections, of ${letters} these are spared: ${wanted}`, () =>
    assert.equal(
      spared(signsOf(letters), known)
        .map((one) => (one ? 'P' : '-'))
        .join(''),
      wanted,
    ))

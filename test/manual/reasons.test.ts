// The table of reasons against what the code makes of every answer, and of every way not to get one.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Facts, findingOf, type Phase } from '../../src/core/classify.ts'
import { settlementOf } from '../../src/core/settlement.ts'
import { sectionOf, spansOf, tableOf } from '../support/manual.ts'
import { fileAt, filesBelow, textOf } from '../support/source.ts'

const rows = tableOf('reason', 'outcome', 'verdict', 'when').map(
  ([reason = '', outcome = '', verdict = '', when = '']) => ({
    words: spansOf(reason),
    plain: reason === '–',
    outcome: spansOf(outcome)[0],
    verdict: spansOf(verdict)[0],
    when,
  }),
)

const nothing: Facts = {
  ...{ phase: 'done', requestSent: true, status: null, error: null, replayed: false, retryAfterMs: null },
  ...{ movedTo: null, keyProblem: false },
}
const UNSENT: Phase[] = ['prepare', 'dns', 'connect', 'tls']
const CODES = ['timeout', 'ENOTFOUND', 'EAI_AGAIN', 'ETIMEOUT', 'ECONNREFUSED', 'ECONNRESET', 'EHOSTUNREACH', 'closed']
const CERTIFICATE = 'CERT_HAS_EXPIRED'

/** Known before anything is sent, and for good. */
const NEVER = (/const NEVER = \[(.+)\]/.exec(textOf('src/core/classify.ts'))?.[1] ?? '').match(/\w+/g) ?? []

const FACTS: Facts[] = [
  ...Array.from({ length: 900 }, (_, i) => ({ ...nothing, status: 100 + i })),
  { ...nothing, status: 200, replayed: true },
  { ...nothing, status: 200, phase: 'response', error: 'timeout' },
  ...[...CODES, 'shutdown', 'protocol_error'].map((error): Facts => ({ ...nothing, phase: 'request', error })),
  ...UNSENT.flatMap((phase) =>
    [...CODES, ...(phase === 'tls' ? [CERTIFICATE] : [])].map(
      (error): Facts => ({ ...nothing, phase, requestSent: false, error }),
    ),
  ),
  { ...nothing, status: 301, movedTo: 'new.example' },
  { ...nothing, status: 422, keyProblem: true },
  ...NEVER.map((error): Facts => ({ ...nothing, phase: 'prepare', requestSent: false, error })),
]

/** Does this row speak of the reason? `http_NNN` and `tls_CODE` stand for many; `… and other codes of the system` too. */
function speaksOf({ words, plain, when }: (typeof rows)[number], reason: string | null, sent: boolean): boolean {
  if (reason === null) return plain
  // What follows a colon is a detail.
  if (words.includes(reason.split(':', 1)[0] as string)) return true
  return words.some(
    (word) =>
      (word === 'http_NNN' && /^http_\d{3}$/.test(reason)) ||
      (word.endsWith('_CODE') && reason.startsWith(word.slice(0, -'CODE'.length))) ||
      (!sent && when.startsWith('no connection') && /^(?:E[A-Z]+|timeout|closed)$/.test(reason)),
  )
}

test('every reason that an answer or its absence can give is in the manual, with its outcome and verdict', () => {
  assert.ok(rows.length > 15)
  const unsaid = FACTS.flatMap((facts) => {
    const policies = [
      undefined,
      { statusPolicy: new Map(), on409: 'delivered' as const },
      { statusPolicy: new Map(), on409: 'dead' as const },
    ]
    return policies.flatMap((policy) => {
      const { outcome, verdict, reason } = findingOf(facts, policy)
      const said = rows.some(
        (row) => row.outcome === outcome && row.verdict === verdict && speaksOf(row, reason, facts.requestSent),
      )
      return said ? [] : [`${outcome} ${verdict} ${reason}`]
    })
  })
  assert.deepEqual([...new Set(unsaid)], [])
})

test('so is every reason for which a delivery is not sent again', () => {
  const code = textOf('src/delivery.ts')
  const reasons = [...code.matchAll(/return neverAgain\(.+, '(\w+)'\)/g)].map(([, reason]) => reason as string)
  assert.ok(reasons.includes('key_window_passed'))
  for (const reason of reasons) {
    const row = rows.find(({ words }) => words.includes(reason))
    assert.deepEqual([row?.outcome, row?.verdict], ['unknown', 'dead'], reason)
  }
})

/** Made where no answer is judged: by a claim, by the poller before it sends. */
const literal = (word: string): boolean =>
  filesBelow('src').some((path) => path.endsWith('.ts') && fileAt(path).code.includes(`'${word}'`))

test('every row of the table is a reason that can come', () => {
  const made = FACTS.map((facts) => ({ ...findingOf(facts), sent: facts.requestSent }))
  const idle = rows.flatMap((row) =>
    (row.plain ? [null] : row.words).flatMap((word) => {
      const one = { ...row, words: word === null ? [] : [word], plain: word === null }
      const found = made.some(
        (finding) =>
          finding.outcome === row.outcome &&
          finding.verdict === row.verdict &&
          speaksOf({ ...one, when: '' }, finding.reason, finding.sent),
      )
      return found || (word !== null && !/[A-Z]/.test(word) && literal(word)) ? [] : [String(word)]
    }),
  )
  assert.deepEqual(idle, [])
})

test('why deliveries end is said too', () => {
  const section = sectionOf('## Outcomes, verdicts and reasons')
  const policy = {
    retryDelayMs: 1,
    backoffFactor: 1,
    maxDelayMs: 1,
    horizonMs: 0,
    maxAttempts: 1,
    onDead: 'skip',
    onUnknown: 'retry',
  } as const
  const standing = { used: 1, ageMs: 1, keyed: false, retryAfterMs: null }
  const { endReason } = settlementOf({ outcome: 'unknown', verdict: 'retry', reason: 'http_500' }, standing, policy, 0)
  for (const word of [endReason, 'late', 'worker_lost', 'key_window_passed', 'unknown_outcome', 'retry_after_capped'])
    assert.ok(section.includes(`\`${word}\``), `${word} is said`)
})

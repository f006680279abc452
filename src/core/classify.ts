// From the facts of one request to what they mean: could the other side have applied it, and what follows.
import type { ResponseHead } from './response-head.ts'
import type { Outcome, Verdict } from './state.ts'

/** How far a request got before it ended: each phase is entered when the one before it is complete. */
export type Phase = 'prepare' | 'dns' | 'connect' | 'tls' | 'request' | 'response' | 'done'

/** What one request left behind. Codes and numbers only: no body, no secret, no URL. */
export interface Facts extends Omit<ResponseHead, 'status' | 'problem'> {
  readonly phase: Phase
  /** Did any byte of the request reach a socket? Decides between `not_applied` and `unknown`. */
  readonly requestSent: boolean
  /** Set only when the status line and all response headers arrived. */
  readonly status: number | null
  /** Code of the error that ended the request, null when the response came to its end. */
  readonly error: string | null
  /** The answer is a problem of the key: it came with another payload before. */
  readonly keyProblem: boolean
}

/** What an endpoint says that answers mean there. */
export interface AnswerPolicy {
  /** The verdict of these statuses; never their outcome. */
  readonly statusPolicy: ReadonlyMap<number, 'retry' | 'dead'>
  readonly on409: 'retry' | 'delivered' | 'dead'
}

const PLAIN: AnswerPolicy = { statusPolicy: new Map(), on409: 'retry' }

/** `release`: our own fault before anything was sent; the attempt is not charged to the delivery. */
export interface Finding {
  readonly outcome: Outcome
  readonly verdict: Exclude<Verdict, 'block'> | 'release'
  readonly reason: string | null
}

type Rule = readonly [fits: (facts: Facts) => boolean, ...Meaning]
type Meaning = readonly [outcome: Outcome, verdict: Finding['verdict'], reason: string | null]

const answered =
  (...statuses: readonly (number | readonly [first: number, last: number])[]): Rule[0] =>
  ({ status }) =>
    statuses.some((one) => (typeof one === 'number' ? one === status : between(status, one)))
const between = (status: number | null, [first, last]: readonly [number, number]) =>
  status !== null && status >= first && status <= last
/** Without codes it fits any, and so it does without phases. */
const unsent =
  ({ codes, phases }: { codes?: readonly string[]; phases?: readonly Phase[] } = {}): Rule[0] =>
  ({ status, requestSent, error, phase }) =>
    status === null && !requestSent && (codes?.includes(codeOf(error)) ?? true) && (phases?.includes(phase) ?? true)
const sent =
  ({ codes }: { codes?: readonly string[] } = {}): Rule[0] =>
  ({ status, requestSent, error }) =>
    status === null && requestSent && (codes?.includes(error ?? '') ?? true)
const codeOf = (error: string | null) => error ?? 'not_sent'

/** Nothing was sent and nothing will ever be, however often it is tried. */
const NEVER = ['bad_config', 'blocked_address', 'endpoint_removed', 'payload_changed']

/** Local exhaustion: the receiver had no part in it. */
const OWN_FAULT = [
  'EMFILE',
  'ENFILE',
  'EADDRNOTAVAIL',
  'ENOBUFS',
  'ENOMEM',
  'dns_busy',
  'secret_unavailable',
  'shutdown',
]

/** The first rule that fits holds. `*` in a reason stands for the status, or else for the code. */
const RULES: readonly Rule[] = [
  [answered([200, 299]), 'delivered', 'delivered', null],
  [answered(409), 'unknown', 'retry', 'duplicate_in_progress'],
  [answered(408, 421, 425, 429), 'not_applied', 'retry', 'http_*'],
  // A proxy answers 5xx after it has forwarded the request, so even 503 proves nothing.
  [answered([500, 999], [0, 99]), 'unknown', 'retry', 'http_*'],
  [answered(301, 308), 'not_applied', 'dead', 'moved_permanently'],
  // 302 and 303 can answer a POST that was carried out.
  [answered([300, 399]), 'unknown', 'retry', 'redirect_not_followed'],
  [answered(410), 'rejected', 'dead', 'gone'],
  [answered(401, 403), 'rejected', 'dead', 'auth_rejected'],
  [answered([400, 499]), 'rejected', 'dead', 'http_*'],
  [answered([100, 199]), 'unknown', 'retry', 'protocol_error'],

  [unsent({ codes: NEVER }), 'not_applied', 'dead', '*'],
  [unsent({ codes: OWN_FAULT }), 'not_applied', 'release', '*'],
  [unsent({ phases: ['tls'] }), 'not_applied', 'retry', 'tls_*'],
  [unsent({ codes: ['ENOTFOUND'] }), 'not_applied', 'retry', 'dns_not_found'],
  [unsent({ codes: ['EAI_AGAIN', 'ETIMEOUT'] }), 'not_applied', 'retry', 'dns_temporary'],
  [unsent({ codes: ['timeout'], phases: ['dns'] }), 'not_applied', 'retry', 'dns_temporary'],
  [unsent({ codes: ['timeout'], phases: ['connect'] }), 'not_applied', 'retry', 'connect_timeout'],
  [unsent(), 'not_applied', 'retry', '*'],

  [sent({ codes: ['shutdown', 'protocol_error'] }), 'unknown', 'retry', '*'],
  [sent(), 'unknown', 'retry', 'request_*'],
]

const KEY_PROBLEM: Meaning = ['rejected', 'dead', 'key_payload_mismatch']
/** What a 409 means where the receiver has another use for it. */
const ON_409 = {
  retry: null,
  delivered: ['delivered', 'delivered', 'duplicate'],
  dead: ['rejected', 'dead', 'http_409'],
} as const satisfies Record<AnswerPolicy['on409'], Meaning | null>

function meaningOf(facts: Facts): Meaning {
  const [, outcome, verdict, reason] = RULES.find(([fits]) => fits(facts)) as Rule
  return [outcome, verdict, reason]
}

/** By status, for the rules say nothing else of an answer: what an endpoint that answers is judged by needs no search. */
const ANSWERS: readonly Finding[] = Array.from({ length: 1_000 }, (_, status) => {
  const [outcome, verdict, reason] = meaningOf({ status } as Facts)
  return { outcome, verdict, reason: reason?.replace('*', String(status)) ?? null }
})

/** The meaning of an attempt's facts, at an endpoint of this policy. */
export function findingOf(facts: Facts, policy = PLAIN): Finding {
  if (facts.status !== null) return findingOfAnswer(facts.status, facts, policy)
  const [outcome, verdict, reason] = meaningOf(facts)
  return {
    outcome,
    verdict,
    reason: reason?.replace('*', () => facts.error ?? (facts.requestSent ? 'closed' : 'not_sent')) ?? null,
  }
}

function findingOfAnswer(status: number, facts: Facts, { statusPolicy, on409 }: AnswerPolicy): Finding {
  const found = ANSWERS[status] as Finding
  if (found.outcome === 'delivered') {
    // The head is the answer: a body that stalls or breaks off takes nothing back.
    if (facts.replayed) return finding('delivered', 'delivered', 'replayed')
    return facts.error === null ? found : finding('delivered', 'delivered', 'response_truncated')
  }
  const special = status === 409 ? ON_409[on409] : facts.keyProblem ? KEY_PROBLEM : null
  if (special !== null) return finding(...special)
  const { outcome, verdict, reason } = found
  return finding(
    outcome,
    statusPolicy.get(status) ?? verdict,
    facts.movedTo === null ? reason : `${reason}:${facts.movedTo}`,
  )
}

const finding = (outcome: Outcome, verdict: Finding['verdict'], reason: string | null): Finding => ({
  outcome,
  verdict,
  reason,
})

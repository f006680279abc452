// From the facts of one request to what they mean: could the other side have applied it, and what follows.
import type { Outcome, Verdict } from './state.ts'

/** How far a request got before it ended: each phase is entered when the one before it is complete. */
export type Phase = 'prepare' | 'dns' | 'connect' | 'tls' | 'request' | 'response' | 'done'

/** What one request left behind. Codes and numbers only: no body, no secret, no URL. */
export interface Facts {
  readonly phase: Phase
  /** Did any byte of the request reach a socket? Decides between `not_applied` and `unknown`. */
  readonly requestSent: boolean
  /** Set only when the status line and all response headers arrived. */
  readonly status: number | null
  /** Code of the error that ended the request, null when the response came to its end. */
  readonly error: string | null
  readonly replayed: boolean
  readonly retryAfterMs: number | null
}

/** `release`: our own fault before anything was sent; the attempt is not charged to the delivery. */
export interface Finding {
  readonly outcome: Outcome
  readonly verdict: Exclude<Verdict, 'block'> | 'release'
  readonly reason: string | null
}

const finding = (outcome: Outcome, verdict: Finding['verdict'], reason: string | null): Finding => ({
  outcome,
  verdict,
  reason,
})

const NOT_APPLIED_STATUS = new Set([408, 421, 425, 429])

/** Local exhaustion: the receiver had no part in it. */
const OWN_FAULT = new Set(['EMFILE', 'ENFILE', 'EADDRNOTAVAIL', 'ENOBUFS', 'ENOMEM', 'secret_unavailable', 'shutdown'])

/** Nothing was sent and nothing will ever be, however often it is tried. */
const NEVER = new Set(['bad_config', 'blocked_address', 'endpoint_removed'])

const UNSENT_REASON: Readonly<Record<string, string>> = {
  ENOTFOUND: 'dns_not_found',
  EAI_AGAIN: 'dns_temporary',
  ETIMEOUT: 'dns_temporary',
}

const UNSENT_TIMEOUT: Readonly<Partial<Record<Phase, string>>> = { dns: 'dns_temporary', connect: 'connect_timeout' }

/** What a request that was sent ended with, where that says it all; else the phase is part of the reason. */
const SENT_REASON = new Set(['shutdown', 'protocol_error'])

/** The meaning of an attempt's facts. */
export function findingOf(facts: Facts): Finding {
  if (facts.status !== null) return byStatus(facts.status, facts)
  return facts.requestSent ? sentWithoutAnswer(facts) : unsent(facts)
}

function byStatus(status: number, facts: Facts): Finding {
  const reason = `http_${status}`
  // The head is the answer: a body that stalls or breaks off takes nothing back.
  if (status >= 200 && status <= 299) {
    return finding('delivered', 'delivered', facts.replayed ? 'replayed' : facts.error && 'response_truncated')
  }
  if (NOT_APPLIED_STATUS.has(status)) return finding('not_applied', 'retry', reason)
  switch (status) {
    case 301:
    case 308:
      return finding('not_applied', 'dead', 'moved_permanently')
    case 401:
    case 403:
      return finding('rejected', 'dead', 'auth_rejected')
    case 409:
      return finding('unknown', 'retry', 'duplicate_in_progress')
    case 410:
      return finding('rejected', 'dead', 'gone')
  }
  // 302 and 303 can answer a POST that was carried out.
  if (status >= 300 && status <= 399) return finding('unknown', 'retry', 'redirect_not_followed')
  if (status >= 400 && status <= 499) return finding('rejected', 'dead', reason)
  if (status >= 100 && status <= 199) return finding('unknown', 'retry', 'protocol_error')
  // A proxy answers 5xx after it has forwarded the request, so even 503 proves nothing.
  return finding('unknown', 'retry', reason)
}

function unsent({ error, phase }: Facts): Finding {
  const code = error ?? 'not_sent'
  if (OWN_FAULT.has(code)) return finding('not_applied', 'release', code)
  if (NEVER.has(code)) return finding('not_applied', 'dead', code)
  const named = phase === 'tls' ? `tls_${code}` : code === 'timeout' ? UNSENT_TIMEOUT[phase] : UNSENT_REASON[code]
  return finding('not_applied', 'retry', named ?? code)
}

function sentWithoutAnswer({ error, phase }: Facts): Finding {
  const code = error ?? 'closed'
  return finding('unknown', 'retry', SENT_REASON.has(code) ? code : `${phase}_${code}`)
}

// What a request meets: a pure function of the seed, its key and its number, so that a failure can be repeated.
import { type Chance, shareOf } from './chance.ts'

/** Share of the requests that meet each fault; the others meet a plain 200. */
const REQUEST_SHARES = {
  // Answers that end nothing.
  http_5xx: 0.08,
  http_4xx_passing: 0.03,
  http_odd: 0.02,
  http_409: 0.02,
  retry_after: 0.003,
  redirect: 0.02,
  // Answers that end the delivery.
  rejected: 0.012,
  gone: 0.001,
  moved: 0.005,
  // No answer.
  silence: 0.02,
  rst_while_reading: 0.02,
  fin_while_reading: 0.02,
  rst_after_reading: 0.03,
  fin_after_reading: 0.03,
  rst_within_head: 0.02,
  fin_within_head: 0.02,
  announced_then_fin: 0.02,
  switching: 0.02,
  malformed: 0.02,
  two_lengths: 0.01,
  huge_head: 0.01,
  // A 200, and trouble beside it.
  announced_then_200: 0.02,
  around_the_deadline: 0.02,
  early_200: 0.02,
  cut_short_by_fin: 0.02,
  cut_short_by_rst: 0.02,
  drip: 0.01,
  long_body: 0.02,
  chunked: 0.02,
  closing: 0.03,
  fin_when_idle: 0.03,
  http_408_when_idle: 0.02,
  rst_when_idle: 0.03,
} as const

export type Fault = keyof typeof REQUEST_SHARES | 'none'
export const FAULTS = Object.keys(REQUEST_SHARES) as Fault[]

/** From this attempt on the peer behaves, so that every delivery comes to an end. */
const BEHAVES_FROM = 9

export const faultOf = (chance: Chance, key: string, number: number): Fault =>
  number >= BEHAVES_FROM ? 'none' : (shareOf(chance('fault', key, number), REQUEST_SHARES) ?? 'none')

const LASTING: ReadonlySet<Fault> = new Set<Fault>([
  ...(['none', 'rejected', 'gone', 'moved', 'announced_then_200', 'early_200', 'cut_short_by_fin'] as const),
  ...([
    'cut_short_by_rst',
    'drip',
    'long_body',
    'chunked',
    'closing',
    'fin_when_idle',
    'http_408_when_idle',
    'rst_when_idle',
  ] as const),
])

/** Attempts that this delivery takes at the least when nothing but its script happens to it. */
export function attemptsOf(chance: Chance, key: string): number {
  for (let number = 1; ; number++) if (LASTING.has(faultOf(chance, key, number))) return number
}

/** What a connection meets before anything is read from it: nobody knows yet whose request it will carry, so its number decides. */
const CONNECTION_SHARES = { rst_at_accept: 0.02, fin_at_accept: 0.02 } as const

/** What a connection meets before its TLS handshake is complete, and thus before any request. */
const HANDSHAKE_SHARES = {
  handshake_rst: 0.05,
  handshake_fin: 0.05,
  handshake_http: 0.05,
  handshake_silence: 0.02,
} as const

export type ConnectionFault = keyof typeof CONNECTION_SHARES
export type HandshakeFault = keyof typeof HANDSHAKE_SHARES

export const connectionFaultOf = (chance: Chance, endpoint: string, ordinal: number): ConnectionFault | null =>
  shareOf(chance('connection', endpoint, ordinal), CONNECTION_SHARES)

export const handshakeFaultOf = (chance: Chance, endpoint: string, ordinal: number): HandshakeFault | null =>
  shareOf(chance('handshake', endpoint, ordinal), HANDSHAKE_SHARES)

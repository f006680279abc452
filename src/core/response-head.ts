// What undici tells raw: the head of a response as buffers, and how a connection ended.
import { retryAfterMs } from './retry-after.ts'

/** What the head of a response says beside its status. */
export interface ResponseHead {
  readonly status: number
  /** A 2xx for a key that the receiver knew. */
  readonly replayed: boolean
  readonly retryAfterMs: number | null
  /** Host that a permanent redirect names, null for none that can be read. */
  readonly movedTo: string | null
  /** The body may say which problem it is (RFC 9457). */
  readonly problem: boolean
}

/** Reads only what its status gives a meaning to. */
export function headOf(status: number, raw: Buffer[], url: URL): ResponseHead {
  const delivered = status >= 200 && status <= 299
  return {
    status,
    replayed: delivered && headerOf(raw, 'idempotent-replayed') === 'true',
    retryAfterMs: delivered ? null : longestMs(raw),
    movedTo: status === 301 || status === 308 ? hostOf(headerOf(raw, 'location'), url) : null,
    problem: status === 422 && /^application\/problem\+json\s*(?:;|$)/i.test(headerOf(raw, 'content-type') ?? ''),
  }
}

/** Never earlier than asked: of several headers the longest. */
function longestMs(raw: Buffer[]): number | null {
  let longest: number | null = null
  for (let at = placeOf(raw, 'retry-after', 0); at >= 0; at = placeOf(raw, 'retry-after', at + 2)) {
    const ms = retryAfterMs(valueAt(raw, at), headerOf(raw, 'date'))
    if (ms !== null) longest = Math.max(longest ?? 0, ms)
  }
  return longest
}

/** Only what a host is made of comes through, and no more of it than a host has. */
function hostOf(location: string | null, base: URL): string | null {
  if (location === null || !URL.canParse(location, base.href)) return null
  const { host } = new URL(location, base)
  return /^[\w.:[\]-]{1,260}$/.test(host) ? host : null
}

/** Does this problem say that the key came with another payload before? By its `type`, where the word stands. */
export function isKeyProblem(body: Buffer): boolean {
  try {
    const { type } = JSON.parse(body.toString()) as { type?: unknown }
    return typeof type === 'string' && /idempoten/i.test(type)
  } catch {
    return false
  }
}

/** Value of the first header of this name, in lower case, or null. */
function headerOf(raw: Buffer[], name: string): string | null {
  const at = placeOf(raw, name, 0)
  return at < 0 ? null : valueAt(raw, at)
}

/** Index of the next header of this name. */
function placeOf(raw: Buffer[], name: string, from: number): number {
  for (let at = from; at < raw.length; at += 2) {
    const candidate = raw[at] as Buffer
    if (candidate.length === name.length && candidate.toString('latin1').toLowerCase() === name) return at
  }
  return -1
}

/** The parser leaves the blanks after a value on it. */
const valueAt = (raw: Buffer[], at: number): string => (raw[at + 1] as Buffer).toString('latin1').trim()

interface SocketError extends Error {
  readonly code?: string
  readonly address?: string | undefined
  /** One for each address that was tried. */
  readonly errors?: readonly SocketError[]
}

/** A host without an address of that family: no port has run out, the receiver cannot be reached from here. */
const isWithoutFamily = ({ code, address }: SocketError): boolean =>
  code === 'EADDRNOTAVAIL' && address?.includes(':') === true

/** One word for the error that ended a request. */
export function codeOfSocket(error: SocketError): string {
  const telling = error.errors?.find((one) => !isWithoutFamily(one)) ?? error.errors?.[0]
  if (telling !== undefined) return codeOfSocket(telling)
  if (isWithoutFamily(error)) return 'ENETUNREACH'
  // undici takes the connection down on a 100 or 101 that nobody asked for, and says so in words only.
  if (error.code === 'UND_ERR_SOCKET')
    return /^bad (upgrade|response)$/.test(error.message) ? 'protocol_error' : 'closed'
  // undici checks the request before it touches a socket: a header value with a line break, say.
  if (error.code === 'UND_ERR_INVALID_ARG') return 'bad_config'
  if (error.code === 'UND_ERR_CONNECT_TIMEOUT') return 'timeout'
  if (error.code === 'UND_ERR_HEADERS_OVERFLOW') return 'headers_too_large'
  if (error.code === 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH' || error.name === 'HTTPParserError') return 'malformed'
  return error.code ?? error.name
}

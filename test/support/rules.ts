// The table of classification, row for row: what the other side does, and what that means.
import * as faults from './faults.ts'
import { answer, type Fault, raw, redirect } from './faults.ts'
import type { Place } from './sites.ts'

export interface Rule {
  readonly does: string
  /** What the peer does to the request, over HTTP and over HTTPS; or where else it goes. */
  readonly meets: Fault | Place
  /** Outcome, verdict, and the reason where there is one. */
  readonly means: string
  /** Was a request sent, how far did it come, and the status. */
  readonly wire: string
  readonly settings: Readonly<Record<string, string | number | boolean | null>>
}

const rule = (
  does: string,
  meets: Rule['meets'],
  means: string,
  wire: string,
  settings: Rule['settings'] = {},
): Rule => ({
  ...{ does, meets, means, wire, settings },
})

/** Waited for until the deadline. */
const SLOW = { timeoutMs: 2_000 }
const problem = (type: string | null, contentType = 'application/problem+json; charset=utf-8') =>
  answer(422, { 'content-type': contentType }, JSON.stringify({ title: 'No', ...(type === null ? {} : { type }) }))
const REUSED = 'https://receiver.example/problems/idempotency-key-reused'
const statusPolicy = '{"404":"retry","429":"dead","503":"dead"}'
const plain = (code: number, means: string) => rule(`${code}`, answer(code), means, `sent done ${code}`)
const all = (codes: readonly number[], means: string) =>
  codes.map((code) => plain(code, means.replace('*', String(code))))
const to = (code: number, host: string) => redirect(code, `https://${host}/hooks?token=1`)

export const RULES: readonly Rule[] = [
  ...all([200, 201, 202, 204, 226, 299], 'delivered delivered'),
  rule('100 that nobody asked for, then 200', faults.continueThen200, 'delivered delivered', 'sent done 200'),
  rule('100 and 200 in small pieces', faults.continueInPieces, 'delivered delivered', 'sent done 200'),
  rule('100 twice, 103, then 200', faults.continueWithHeaders, 'delivered delivered', 'sent done 200'),
  rule('103, then 200', faults.hintsThen200, 'delivered delivered', 'sent done 200'),
  // case C50
  rule(
    '200 with a length that is a lie',
    faults.lyingLength(200),
    'delivered delivered response_truncated',
    'sent response 200',
  ),
  rule(
    '200 with chunks that break off',
    faults.truncatedChunked(200),
    'delivered delivered response_truncated',
    'sent response 200',
  ),
  rule('200 and a reset', faults.resetAfterHead(200), 'delivered delivered response_truncated', 'sent response 200'),
  rule('200 that never ends', faults.drip(200), 'delivered delivered response_truncated', 'sent response 200', SLOW),
  rule('200 with 50 MB', faults.bodyOf(200, 50_000_000), 'delivered delivered response_truncated', 'sent response 200'),
  // case C61
  rule('200 with a gzip bomb', faults.gzipBomb(200), 'delivered delivered response_truncated', 'sent response 200', {
    captureResponse: true,
  }),
  rule('200 before the request is read', faults.early(200), 'delivered delivered', 'sent done 200'),
  rule(
    '200 that replays',
    answer(200, { 'Idempotent-Replayed': 'true' }),
    'delivered delivered replayed',
    'sent done 200',
  ),
  rule(
    '200 that says it is no replay',
    answer(200, { 'idempotent-replayed': 'false' }),
    'delivered delivered',
    'sent done 200',
  ),

  plain(409, 'unknown retry duplicate_in_progress'),
  rule('409 where it means taken', answer(409), 'delivered delivered duplicate', 'sent done 409', {
    on409: 'delivered',
  }),
  rule('409 where it means never', answer(409), 'rejected dead http_409', 'sent done 409', { on409: 'dead' }),
  ...all([408, 425, 429], 'not_applied retry http_*'),
  rule('421', answer(421), 'not_applied retry http_421', 'sent response 421'),
  rule('429 where it is final', answer(429), 'not_applied dead http_429', 'sent done 429', { statusPolicy }),
  ...all([500, 501, 502, 503, 504, 599, 600, 999], 'unknown retry http_*'),
  rule('099', faults.badStatus('099'), 'unknown retry http_99', 'sent response 99'),
  rule('42', faults.badStatus('42'), 'unknown retry request_malformed', 'sent request'),
  rule('503 where it is final', answer(503), 'unknown dead http_503', 'sent done 503', { statusPolicy }),
  rule('503 with a length that is a lie', faults.lyingLength(503), 'unknown retry http_503', 'sent response 503'),
  rule('500 with 1 MB', faults.bodyOf(500, 1_000_000), 'unknown retry http_500', 'sent response 500', {
    captureResponse: true,
  }),
  rule('500 that never ends', faults.drip(500), 'unknown retry http_500', 'sent response 500', SLOW),
  // case C51
  rule('301', to(301, 'new.example:8443'), 'not_applied dead moved_permanently:new.example:8443', 'sent done 301'),
  rule('308', to(308, 'user:secret@NEW.example'), 'not_applied dead moved_permanently:new.example', 'sent done 308'),
  rule('308 without a place', answer(308), 'not_applied dead moved_permanently', 'sent done 308'),
  rule('301 to what is no URL', redirect(301, 'https://['), 'not_applied dead moved_permanently', 'sent done 301'),
  rule(
    '301 to a host of quotes',
    redirect(301, `https://a'"b.example/`),
    'not_applied dead moved_permanently',
    'sent done 301',
  ),
  ...[300, 302, 303, 304, 307].map((code) =>
    rule(`${code}`, to(code, '169.254.169.254'), 'unknown retry redirect_not_followed', `sent done ${code}`),
  ),
  plain(410, 'rejected dead gone'),
  ...all([401, 403], 'rejected dead auth_rejected'),
  rule('422 with a problem of the key', problem(REUSED), 'rejected dead key_payload_mismatch', 'sent done 422'),
  rule('422 with another problem', problem('about:blank'), 'rejected dead http_422', 'sent done 422'),
  rule('422 with a problem of no type', problem(null), 'rejected dead http_422', 'sent done 422'),
  rule(
    '422 with JSON that is no problem',
    problem(REUSED, 'application/json'),
    'rejected dead http_422',
    'sent done 422',
  ),
  rule(
    '422 with no JSON',
    answer(422, { 'content-type': 'application/problem+json' }, '{'),
    'rejected dead http_422',
    'sent done 422',
  ),
  ...all([400, 402, 404, 405, 413, 418, 422, 451, 499], 'rejected dead http_*'),
  rule('404 where it passes', answer(404), 'rejected retry http_404', 'sent done 404', { statusPolicy }),
  rule('100 and nothing after it', faults.continueOnly, 'unknown retry protocol_error', 'sent request'),
  rule('103 and nothing after it', faults.hintsOnly, 'unknown retry protocol_error', 'sent request'),
  rule('101', faults.upgrade, 'unknown retry protocol_error', 'sent request'),

  rule('no such name', () => 'https://unknown.test/', 'not_applied retry dns_not_found', 'unsent dns'),
  // case C58
  rule('the resolver fails', () => 'https://later.test/', 'not_applied retry dns_temporary', 'unsent dns'),
  rule('the resolver times out', () => 'https://slow.test/', 'not_applied retry dns_temporary', 'unsent dns'),
  rule('the resolver is silent', () => 'https://silent.test/', 'not_applied retry dns_temporary', 'unsent dns', SLOW),
  rule('refuses', (s) => `http://127.0.0.1:${s.refusing}/`, 'not_applied retry ECONNREFUSED', 'unsent connect'),
  rule('is unreachable', () => 'http://255.255.255.255/', 'not_applied retry ENETUNREACH', 'unsent connect'),
  rule(
    'never connects',
    (s) => `http://127.0.0.1:${s.full}/`,
    'not_applied retry connect_timeout',
    'unsent connect',
    SLOW,
  ),
  ...(
    [
      ['expired', 'CERT_HAS_EXPIRED'],
      ['not-yet-valid', 'CERT_NOT_YET_VALID'],
      ['wrong-name', 'ERR_TLS_CERT_ALTNAME_INVALID'],
      ['self-signed', 'DEPTH_ZERO_SELF_SIGNED_CERT'],
      ['unknown-ca', 'SELF_SIGNED_CERT_IN_CHAIN'],
      ['old-protocol', 'ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION'],
    ] as const
  ).map(([kind, code]) =>
    rule(
      `a certificate or protocol: ${kind}`,
      (s) => s.misfits[kind].url,
      `not_applied retry tls_${code}`,
      'unsent tls',
    ),
  ),
  rule(
    'no TLS on a TLS port',
    (s) => s.http.url.replace('http:', 'https:'),
    'not_applied retry tls_ERR_SSL_WRONG_VERSION_NUMBER',
    'unsent tls',
  ),
  rule('closes in the handshake', (s) => s.closing.url, 'not_applied retry tls_ECONNRESET', 'unsent tls'),
  rule('resets in the handshake', (s) => s.resetting.url, 'not_applied retry tls_ECONNRESET', 'unsent tls'),
  rule('is silent in the handshake', (s) => s.silent.url, 'not_applied retry tls_timeout', 'unsent tls', SLOW),

  // case C52
  rule('a reset', faults.reset, 'unknown retry request_ECONNRESET', 'sent request'),
  rule('a reset while it is sent', faults.resetDuring, 'unknown retry request_ECONNRESET', 'sent request'),
  rule('the end of the connection', faults.fin, 'unknown retry request_closed', 'sent request'),
  rule('the end of the connection while it is sent', faults.finDuring, 'unknown retry request_closed', 'sent request'),
  rule('silence', faults.silence, 'unknown retry request_timeout', 'sent request', SLOW),
  rule('a peer that reads no further', faults.deaf, 'unknown retry request_timeout', 'sent request', SLOW),
  rule('half a head', faults.halfHead, 'unknown retry request_closed', 'sent request'),
  rule('a head that never ends', faults.dripHead(), 'unknown retry request_timeout', 'sent request', SLOW),
  rule('no HTTP', faults.notHttp, 'unknown retry request_malformed', 'sent request'),
  rule('a head of 300 KB', faults.hugeHeaders, 'unknown retry request_headers_too_large', 'sent request'),
  rule('a length and chunks at once', faults.lengthAndChunked, 'unknown retry request_malformed', 'sent request'),
  rule(
    'TLS on a port without',
    (s) => s.https.url.replace('https:', 'http:'),
    'unknown retry request_closed',
    'sent request',
  ),
  rule('bytes of no protocol', raw(Buffer.alloc(64, 0xff)), 'unknown retry request_malformed', 'sent request'),

  rule('is a private name', () => 'https://inside.test/', 'not_applied dead blocked_address', 'unsent prepare', {
    allowPrivate: false,
  }),
]

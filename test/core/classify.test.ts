import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type AnswerPolicy, type Facts, type Finding, findingOf, type Phase } from '../../src/core/classify.ts'

const answered = (status: number, more: Partial<Facts> = {}): Facts => ({
  phase: 'done',
  requestSent: true,
  status,
  error: null,
  replayed: false,
  retryAfterMs: null,
  movedTo: null,
  keyProblem: false,
  ...more,
})
const unsent = (phase: Phase, error: string | null): Facts => ({
  ...answered(0),
  status: null,
  phase,
  requestSent: false,
  error,
})
const sent = (phase: Phase, error: string | null): Facts => ({ ...unsent(phase, error), requestSent: true })

type Wanted = readonly [outcome: Finding['outcome'], verdict: Finding['verdict'], reason: string | null]

/** One row or more for each row of the table of classification, in its order. */
const rows: readonly (readonly [why: string, facts: Facts, wanted: Wanted])[] = [
  ['a 2xx that replays a stored answer', answered(200, { replayed: true }), ['delivered', 'delivered', 'replayed']],
  // case C50
  [
    'a 2xx whose body broke off',
    answered(200, { phase: 'response', error: 'closed' }),
    ['delivered', 'delivered', 'response_truncated'],
  ],
  [
    'a 2xx whose body stalled past the deadline',
    answered(204, { phase: 'response', error: 'timeout' }),
    ['delivered', 'delivered', 'response_truncated'],
  ],
  [
    'a 2xx whose body we stopped reading',
    answered(200, { phase: 'response', error: 'body_limit' }),
    ['delivered', 'delivered', 'response_truncated'],
  ],
  [
    'a 2xx whose body our shutdown cut',
    answered(200, { phase: 'response', error: 'shutdown' }),
    ['delivered', 'delivered', 'response_truncated'],
  ],
  [
    'a replayed 2xx that broke off',
    answered(200, { phase: 'response', error: 'closed', replayed: true }),
    ['delivered', 'delivered', 'replayed'],
  ],
  [
    'a 503 whose body broke off is the 503',
    answered(503, { phase: 'response', error: 'closed' }),
    ['unknown', 'retry', 'http_503'],
  ],
  ['a 503 that claims to be a replay', answered(503, { replayed: true }), ['unknown', 'retry', 'http_503']],
  [
    'a 410 whose body our shutdown cut',
    answered(410, { phase: 'response', error: 'shutdown' }),
    ['rejected', 'dead', 'gone'],
  ],

  // case C58
  ['resolver: no such name', unsent('dns', 'ENOTFOUND'), ['not_applied', 'retry', 'dns_not_found']],
  ['resolver: try again', unsent('dns', 'EAI_AGAIN'), ['not_applied', 'retry', 'dns_temporary']],
  ['resolver: timeout of its own', unsent('dns', 'ETIMEOUT'), ['not_applied', 'retry', 'dns_temporary']],
  ['resolver: our deadline', unsent('dns', 'timeout'), ['not_applied', 'retry', 'dns_temporary']],
  ['refused', unsent('connect', 'ECONNREFUSED'), ['not_applied', 'retry', 'ECONNREFUSED']],
  ['host unreachable', unsent('connect', 'EHOSTUNREACH'), ['not_applied', 'retry', 'EHOSTUNREACH']],
  ['network unreachable', unsent('connect', 'ENETUNREACH'), ['not_applied', 'retry', 'ENETUNREACH']],
  ['connect timeout of the system', unsent('connect', 'ETIMEDOUT'), ['not_applied', 'retry', 'ETIMEDOUT']],
  ['connect timeout of ours', unsent('connect', 'timeout'), ['not_applied', 'retry', 'connect_timeout']],
  ['reset while connecting', unsent('connect', 'ECONNRESET'), ['not_applied', 'retry', 'ECONNRESET']],
  ['closed while connecting', unsent('connect', 'closed'), ['not_applied', 'retry', 'closed']],
  ['certificate expired', unsent('tls', 'CERT_HAS_EXPIRED'), ['not_applied', 'retry', 'tls_CERT_HAS_EXPIRED']],
  [
    'certificate for another name',
    unsent('tls', 'ERR_TLS_CERT_ALTNAME_INVALID'),
    ['not_applied', 'retry', 'tls_ERR_TLS_CERT_ALTNAME_INVALID'],
  ],
  [
    'unknown authority',
    unsent('tls', 'SELF_SIGNED_CERT_IN_CHAIN'),
    ['not_applied', 'retry', 'tls_SELF_SIGNED_CERT_IN_CHAIN'],
  ],
  ['another protocol', unsent('tls', 'EPROTO'), ['not_applied', 'retry', 'tls_EPROTO']],
  ['reset during the TLS handshake', unsent('tls', 'ECONNRESET'), ['not_applied', 'retry', 'tls_ECONNRESET']],
  ['TLS handshake too slow', unsent('tls', 'timeout'), ['not_applied', 'retry', 'tls_timeout']],
  ['not sent, nobody knows why', unsent('connect', null), ['not_applied', 'retry', 'not_sent']],

  // case C52
  ['reset after the request', sent('request', 'ECONNRESET'), ['unknown', 'retry', 'request_ECONNRESET']],
  ['closed before an answer', sent('request', 'closed'), ['unknown', 'retry', 'request_closed']],
  ['closed without an error', sent('request', null), ['unknown', 'retry', 'request_closed']],
  ['pipe broken while writing', sent('request', 'EPIPE'), ['unknown', 'retry', 'request_EPIPE']],
  ['no answer within the deadline', sent('request', 'timeout'), ['unknown', 'retry', 'request_timeout']],
  [
    'an answer that is no HTTP',
    sent('request', 'HPE_INVALID_CONSTANT'),
    ['unknown', 'retry', 'request_HPE_INVALID_CONSTANT'],
  ],
  ['an upgrade nobody asked for', sent('request', 'protocol_error'), ['unknown', 'retry', 'protocol_error']],
  [
    'refused is no proof once something was sent',
    sent('request', 'ECONNREFUSED'),
    ['unknown', 'retry', 'request_ECONNREFUSED'],
  ],
  ['nor is an exhaustion of ours', sent('request', 'EMFILE'), ['unknown', 'retry', 'request_EMFILE']],

  ['an address that policy forbids', unsent('prepare', 'blocked_address'), ['not_applied', 'dead', 'blocked_address']],
  ['an endpoint that was removed', unsent('prepare', 'endpoint_removed'), ['not_applied', 'dead', 'endpoint_removed']],
  ['a request that cannot be made', unsent('prepare', 'bad_config'), ['not_applied', 'dead', 'bad_config']],

  ['our file descriptors are used up', unsent('connect', 'EMFILE'), ['not_applied', 'release', 'EMFILE']],
  ['those of the machine', unsent('connect', 'ENFILE'), ['not_applied', 'release', 'ENFILE']],
  ['our ports are used up', unsent('connect', 'EADDRNOTAVAIL'), ['not_applied', 'release', 'EADDRNOTAVAIL']],
  ['our buffers are used up', unsent('connect', 'ENOBUFS'), ['not_applied', 'release', 'ENOBUFS']],
  ['our memory is used up', unsent('connect', 'ENOMEM'), ['not_applied', 'release', 'ENOMEM']],
  ['used up while resolving', unsent('dns', 'EMFILE'), ['not_applied', 'release', 'EMFILE']],
  [
    'the secret store is down',
    unsent('prepare', 'secret_unavailable'),
    ['not_applied', 'release', 'secret_unavailable'],
  ],

  ['our shutdown, nothing sent', unsent('connect', 'shutdown'), ['not_applied', 'release', 'shutdown']],
  ['our shutdown in the TLS handshake', unsent('tls', 'shutdown'), ['not_applied', 'release', 'shutdown']],
  ['our shutdown, request sent', sent('request', 'shutdown'), ['unknown', 'retry', 'shutdown']],
]

for (const [why, facts, [outcome, verdict, reason]] of rows) {
  test(`${why}: ${outcome}, ${verdict}, ${reason}`, () => {
    assert.deepEqual(findingOf(facts), { outcome, verdict, reason })
  })
}

/** The rule for every status there can be; the first row that matches holds. */
const statuses: readonly (readonly [why: string, test: (status: number) => boolean, wanted: Wanted])[] = [
  ['1xx alone', (s) => s >= 100 && s < 200, ['unknown', 'retry', 'protocol_error']],
  ['2xx', (s) => s >= 200 && s < 300, ['delivered', 'delivered', null]],
  ['moved for good', (s) => [301, 308].includes(s), ['not_applied', 'dead', 'moved_permanently']],
  // case C51
  ['any other 3xx', (s) => s >= 300 && s < 400, ['unknown', 'retry', 'redirect_not_followed']],
  ['408, 421, 425 and 429', (s) => [408, 421, 425, 429].includes(s), ['not_applied', 'retry', 'http_']],
  ['not allowed', (s) => [401, 403].includes(s), ['rejected', 'dead', 'auth_rejected']],
  // case C57
  ['the key in progress', (s) => s === 409, ['unknown', 'retry', 'duplicate_in_progress']],
  ['gone', (s) => s === 410, ['rejected', 'dead', 'gone']],
  ['any other 4xx', (s) => s >= 400 && s < 500, ['rejected', 'dead', 'http_']],
  ['5xx, and numbers that are no status', () => true, ['unknown', 'retry', 'http_']],
]

test('every number from 0 to 999 as a status means what the table says', () => {
  for (let status = 0; status <= 999; status++) {
    const [why, , [outcome, verdict, reason]] = statuses.find(([, matches]) =>
      matches(status),
    ) as (typeof statuses)[number]
    const wanted = { outcome, verdict, reason: reason === 'http_' ? `http_${status}` : reason }
    assert.deepEqual(findingOf(answered(status)), wanted, `${status}: ${why}`)
  }
})

const policy = (more: Partial<AnswerPolicy>): AnswerPolicy => ({ statusPolicy: new Map(), on409: 'retry', ...more })
const statusPolicy = new Map([
  [404, 'retry'],
  [422, 'retry'],
  [503, 'dead'],
  [429, 'dead'],
  [301, 'retry'],
] as const)

const overridden: readonly (readonly [why: string, facts: Facts, policy: Partial<AnswerPolicy>, wanted: Wanted])[] = [
  ['404 that shall be retried', answered(404), { statusPolicy }, ['rejected', 'retry', 'http_404']],
  ['503 that shall be final', answered(503), { statusPolicy }, ['unknown', 'dead', 'http_503']],
  ['429 that shall be final', answered(429), { statusPolicy }, ['not_applied', 'dead', 'http_429']],
  ['a status that is not named', answered(410), { statusPolicy }, ['rejected', 'dead', 'gone']],
  ['a plain 422 that shall be retried', answered(422), { statusPolicy }, ['rejected', 'retry', 'http_422']],
  [
    'a problem of the key, which no retry heals',
    answered(422, { keyProblem: true }),
    { statusPolicy },
    ['rejected', 'dead', 'key_payload_mismatch'],
  ],
  [
    'moved, and where to',
    answered(301, { movedTo: 'new.example' }),
    { statusPolicy },
    ['not_applied', 'retry', 'moved_permanently:new.example'],
  ],
  ['409 by default', answered(409), {}, ['unknown', 'retry', 'duplicate_in_progress']],
  ['409 that means taken before', answered(409), { on409: 'delivered' }, ['delivered', 'delivered', 'duplicate']],
  ['409 that means never', answered(409), { on409: 'dead' }, ['rejected', 'dead', 'http_409']],
  ['409 and a policy of others', answered(409), { statusPolicy }, ['unknown', 'retry', 'duplicate_in_progress']],
]

for (const [why, facts, more, [outcome, verdict, reason]] of overridden) {
  test(`an endpoint's own meaning: ${why}: ${outcome}, ${verdict}, ${reason}`, () => {
    assert.deepEqual(findingOf(facts, policy(more)), { outcome, verdict, reason })
  })
}

test('no policy of statuses changes an outcome', () => {
  for (let status = 300; status <= 599; status++)
    for (const verdict of ['retry', 'dead'] as const)
      assert.equal(
        findingOf(answered(status), policy({ statusPolicy: new Map([[status, verdict]]) })).outcome,
        findingOf(answered(status)).outcome,
      )
})

test('whatever went wrong, an attempt without an answer is not_applied only if nothing was sent, and delivered never', () => {
  const codes = [null, ...new Set(rows.map(([, { error }]) => error))]
  for (const phase of ['prepare', 'dns', 'connect', 'tls', 'request', 'response'] as const)
    for (const code of codes) {
      assert.equal(findingOf(sent(phase, code)).outcome, 'unknown', `${phase} ${code}`)
      assert.equal(findingOf(sent(phase, code)).verdict, 'retry', `${phase} ${code}`)
      assert.equal(findingOf(unsent(phase, code)).outcome, 'not_applied', `${phase} ${code}`)
    }
})

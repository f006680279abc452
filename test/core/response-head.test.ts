// What the head of an answer says beside its status, and the error that ended a request, in one word: the receiver's doing, or ours.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { codeOfSocket, headOf } from '../../src/core/response-head.ts'

const error = (code: string, address?: string) => Object.assign(new Error(code), { code, address })
const tried = (...errors: Error[]) => Object.assign(new AggregateError(errors), { code: 'EADDRNOTAVAIL' })

const NO_V6 = error('EADDRNOTAVAIL', '2001:db8::1')

for (const [why, found, wanted] of [
  ['no port is left', error('EADDRNOTAVAIL', '192.0.2.1'), 'EADDRNOTAVAIL'],
  ['this host has no IPv6', NO_V6, 'ENETUNREACH'],
  ['it has none, and the other address refuses', tried(NO_V6, error('ECONNREFUSED', '192.0.2.1')), 'ECONNREFUSED'],
  ['of several addresses none can be reached', tried(NO_V6, NO_V6), 'ENETUNREACH'],
  ['file descriptors are used up for all', tried(error('EMFILE'), error('EMFILE')), 'EMFILE'],
] as const)
  test(`${why}: ${wanted}`, () => assert.equal(codeOfSocket(found), wanted))

const head = (...headers: string[]) =>
  headOf(
    503,
    headers.map((text) => Buffer.from(text)),
    new URL('https://clinic.example/'),
  )

for (const [values, wanted] of [
  [['60', '120'], 120_000],
  [['120', '60'], 120_000],
  [['soon', '120'], 120_000],
  [['soon', 'later'], null],
  [[], null],
] as const)
  test(`of Retry-After: ${values.join(' and ')}, the longest that can be read holds`, () =>
    assert.equal(head(...values.flatMap((value) => ['Retry-After', value])).retryAfterMs, wanted))

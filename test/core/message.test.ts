import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runInNewContext } from 'node:vm'
import { isDelayMs, isTraceparent, PAYLOAD_LIMIT_BYTES, payloadText, textProblem } from '../../src/core/message.ts'
import { KEYS } from './keys.ts'

for (const [why, key, good] of KEYS) {
  test(`key check: ${why} is ${good ? 'taken' : 'refused'}`, () => {
    const problem = textProblem({ key })
    assert.equal(problem === null, good)
    if (problem === null) return
    assert.equal(problem.field, 'key')
    assert.match(problem.problem, /^is \d+ bytes long; it must be 1 to 255 of A-Z a-z 0-9 \. _ : -$/)
  })
}

/** Wanted: null, or what the problem says. */
const texts: readonly (readonly [why: string, field: string, value: unknown, wanted: RegExp | null])[] = [
  ['absent', 'orderingKey', undefined, null],
  ['a number', 'key', 7, /^is a number; it must be a string/],
  ['null', 'key', null, /^is an object; it must be a string/],
  ['an object', 'type', {}, /^is an object; it must be a string/],
  ['printable ASCII', 'type', 'payment.captured/v2!', null],
  ['200 characters', 'type', 't'.repeat(200), null],
  ['201 characters', 'type', 't'.repeat(201), /^is 201 bytes long; it must be 1 to 200/],
  ['empty', 'type', '', /^is 0 bytes long/],
  ['a blank', 'type', 'payment captured', /without spaces$/],
  ['a line break, which would end the header', 'type', 'a\r\nx-y: z', /without spaces$/],
  ['an accent', 'type', 'é', /^is 2 bytes long/],
  ['255 characters', 'correlationId', 'c'.repeat(255), null],
  ['256 characters', 'correlationId', 'c'.repeat(256), /^is 256 bytes long; it must be 1 to 255/],
  ['a blank', 'correlationId', 'a b', /without spaces$/],
  ['a line break', 'correlationId', 'a\nb', /without spaces$/],
  ['any text', 'orderingKey', 'Patient 7 – Zoë', null],
  ['400 bytes', 'orderingKey', 'é'.repeat(200), null],
  [
    '401 bytes in 201 characters',
    'orderingKey',
    `a${'é'.repeat(200)}`,
    /^is 401 bytes long; it must be 1 to 400 bytes$/,
  ],
  ['U+0000', 'orderingKey', 'a\0', /^is 2 bytes long/],
  ['half a surrogate pair', 'orderingKey', '\ud83e', /^is 3 bytes long/],
  ['2000 bytes', 'payloadRef', 'r'.repeat(2_000), null],
  ['2001 bytes', 'payloadRef', 'r'.repeat(2_001), /^is 2001 bytes long; it must be 1 to 2000 bytes$/],
  ['empty', 'payloadRef', '', /^is 0 bytes long/],
]

for (const [why, field, value, wanted] of texts) {
  test(`${field}: ${why} is ${wanted === null ? 'taken' : 'refused'}`, () => {
    const problem = textProblem({ [field]: value })
    if (wanted === null) assert.equal(problem, null)
    else assert.match(problem?.problem ?? '', wanted)
  })
}

test('of several bad fields the first is named', () => {
  assert.equal(textProblem({ key: 'good', type: '', orderingKey: '' })?.field, 'type')
})

const envelope = (bytes: number) => `["${'x'.repeat(bytes - 4)}"]`
const cycle: unknown[] = []
cycle.push(cycle)

/** Wanted: the bytes to send, or what the problem says. */
const payloads: readonly (readonly [why: string, payload: unknown, wanted: string | RegExp])[] = [
  ['an object', { b: 1, a: [2] }, '{"b":1,"a":[2]}'],
  ['an array', [1, null], '[1,null]'],
  ['text as it is', ' {"b":1e2, "a":9007199254740993}\n', ' {"b":1e2, "a":9007199254740993}\n'],
  ['text that names a key twice', '{"a":1,"a":2}', '{"a":1,"a":2}'],
  ['an escaped U+0000', '{"a":"\\u0000"}', '{"a":"\\u0000"}'],
  ['an object with U+0000, which is escaped', { a: '\0' }, '{"a":"\\u0000"}'],
  ['an object with half a surrogate pair, which is escaped', { a: '\ud83e' }, '{"a":"\\ud83e"}'],
  ['exactly the limit', envelope(PAYLOAD_LIMIT_BYTES), envelope(PAYLOAD_LIMIT_BYTES)],
  ['one byte more', envelope(PAYLOAD_LIMIT_BYTES + 1), /^is 262145 bytes long; the limit is 262144: .*payloadRef$/],
  ['more bytes than characters', `["${'é'.repeat(131_071)}"]`, /^is 262146 bytes long/],
  ['an object over the limit', ['x'.repeat(PAYLOAD_LIMIT_BYTES)], /^is 262148 bytes long/],
  ['a raw U+0000', '{"a":"\0"}', /^contains a raw U\+0000/],
  ['a raw half of a surrogate pair', '["\ud83e"]', /^contains a raw U\+0000 or a lone surrogate/],
  ['a JSON string', '"text"', /^is not a JSON object or array$/],
  ['a JSON number', '1842', /^is not a JSON object or array$/],
  ['a JSON null', 'null', /^is not a JSON object or array$/],
  ['empty text', '', /^is not a JSON object or array$/],
  ['a byte order mark', '\ufeff{}', /^is not a JSON object or array$/],
  ['a Date, which becomes a string', new Date(0), /^is not a JSON object or array$/],
  ['an object that becomes nothing', { toJSON: () => undefined }, /^is not a JSON object or array$/],
  ['a BigInt inside', { a: 1n }, /^cannot be serialised: it contains a cycle, a BigInt/],
  ['a cycle', cycle, /^cannot be serialised/],
  ['a promise', Promise.resolve({ a: 1 }), /^is or contains a promise or the like; pass what it resolves to$/],
  ['a promise within', { user: Promise.resolve({ a: 1 }) }, /^is or contains a promise/],
  ['a Map within', { a: [{ b: new Map([[1, 2]]) }] }, /^is or contains what has no JSON form \(Map\)/],
  ['an Error with fields within', { cause: Object.assign(new Error('x'), { code: 1 }) }, /JSON form \(Error\)/],
  ['bytes within', { bytes: new Uint8Array(2) }, /JSON form \(Uint8Array\)/],
  // biome-ignore lint/suspicious/noThenProperty: what drivers and query builders have
  ['a query that was not run', { text: 'select', then() {} }, /^is or contains a promise/],
  // biome-ignore lint/suspicious/noThenProperty: a name like any other
  ['a message about a then', { then: 'later' }, '{"then":"later"}'],
  ['an Error', new RangeError('x'), /^is or contains what has no JSON form \(Error\)/],
  ['an Error that knows its form', Object.assign(new Error('x'), { toJSON: () => ({ a: 1 }) }), '{"a":1}'],
  ['a RegExp', /x/, /^is or contains what has no JSON form \(RegExp\)/],
  ['a form', new URLSearchParams('a=1'), /^is or contains what has no JSON form \(URLSearchParams\)/],
  ['an iterator', [1].values(), /^is or contains what has no JSON form \(Array Iterator\)/],
  ['a Map of another realm', runInNewContext('new Map([[1, 2]])'), /^is or contains what has no JSON form \(Map\)/],
  ['nothing in particular', Object.create(null), '{}'],
  ['null', null, /^is null; it must be an object, an array/],
  ['a number', 7, /^is a number; it must be an object, an array/],
  ['nothing', undefined, /^is a undefined; it must be an object/],
  ['a function', () => ({}), /^is a function/],
]

// case C43
for (const [why, payload, wanted] of payloads) {
  test(`payload: ${why} is ${typeof wanted === 'string' ? 'kept byte for byte' : 'refused'}`, () => {
    const result = payloadText(payload)
    if (typeof wanted === 'string') assert.deepEqual(result, { text: wanted })
    else assert.match('problem' in result ? result.problem : '', wanted)
  })
}

test('a problem with a payload never repeats it', () => {
  for (const payload of ['"SECRET"', '{"SECRET\0":1}', `["SECRET${'x'.repeat(PAYLOAD_LIMIT_BYTES)}"]`])
    assert.ok(!JSON.stringify(payloadText(payload)).includes('SECRET'))
})

test('a traceparent has 55 characters of the W3C form', () => {
  const good = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
  assert.equal(isTraceparent(good), true)
  for (const bad of [
    '',
    good.slice(1),
    `${good}0`,
    good.toUpperCase(),
    good.replace('-', ' '),
    `${good.slice(1)}\n`,
    55,
  ])
    assert.equal(isTraceparent(bad), false, String(bad))
})

test('a delay is a whole number of milliseconds up to ten years', () => {
  for (const good of [0, 1, 315_360_000_000]) assert.equal(isDelayMs(good), true, String(good))
  for (const bad of [-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, 315_360_000_001, '5', null])
    assert.equal(isDelayMs(bad), false, String(bad))
})

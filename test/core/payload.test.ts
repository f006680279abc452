import assert from 'node:assert/strict'
import { test } from 'node:test'
import { bodyProblem, bytesOf, LOADED_LIMIT_BYTES } from '../../src/core/payload.ts'
import { shownReference } from '../../src/core/reference.ts'

/** What a load for the first attempt looks at. */
function bodyOf(loaded: unknown) {
  const found = bytesOf(loaded)
  const problem = 'problem' in found ? found.problem : bodyProblem(found.body)
  return problem === null ? found : { problem }
}

const longest = `["${'x'.repeat(LOADED_LIMIT_BYTES - 4)}"]`
const bytes = (...all: number[]) => Uint8Array.from(all)

const good: readonly (readonly [why: string, loaded: string | Uint8Array])[] = [
  ['an object', '{"a":1}'],
  ['an array', '[]'],
  ['spelling that a parser would change', ' { "b":1e2,"a":9007199254740993,"a":1.0 }\r\n'],
  ['text beyond ASCII', '{"name":"Zoë 🩺 \\u0000 \\ud800"}'],
  ['bytes', Buffer.from('{"name":"Zoë"}')],
  ['bytes that are no Buffer', new TextEncoder().encode('[1]')],
  ['a part of a larger buffer', Buffer.from('xx[2]xx').subarray(2, 5)],
  ['the longest', longest],
]

for (const [why, loaded] of good)
  test(`${why} is the body, byte for byte`, () => {
    const found = bodyOf(loaded)
    assert.ok('body' in found)
    assert.ok(found.body.equals(Buffer.from(loaded as string)))
  })

test('what was loaded may be written over: the body is a copy', () => {
  const loaded = Buffer.from('{"a":1}')
  const found = bodyOf(loaded)
  loaded.fill(0)
  assert.ok('body' in found && found.body.toString() === '{"a":1}')
})

const bad: readonly (readonly [why: string, loaded: unknown, problem: RegExp])[] = [
  ['nothing', undefined, /^returned nothing$/],
  ['null', null, /^returned nothing$/],
  ['an empty text', '', /^returned nothing$/],
  ['no bytes', bytes(), /no JSON object or array/],
  ['an object that was not serialised', { a: 1 }, /^returned an object, not text or bytes$/],
  ['a number', 7, /^returned a number, not text or bytes$/],
  ['a buffer without a view', new ArrayBuffer(2), /^returned an object, not text or bytes$/],
  ['bytes read as numbers', new Uint16Array([0x7d7b]), /not text or bytes/],
  ['text that is no JSON', '{"a":1', /no JSON object or array in UTF-8/],
  ['two objects', '{}{}', /no JSON object or array/],
  ['a string of JSON', '"a"', /no JSON object or array/],
  ['null as JSON', 'null', /no JSON object or array/],
  ['a raw U+0000', '{"a":"\0"}', /no JSON object or array/],
  ['a byte order mark', '\ufeff{}', /no JSON object or array/],
  ['bytes that are no UTF-8', bytes(0x5b, 0x22, 0xff, 0x22, 0x5d), /in UTF-8/],
  ['half a surrogate pair', '{"a":"\ud800"}', /lone surrogate/],
  ['one byte too many', `${longest} `, /^returned 16777217 bytes; the limit is 16777216$/],
]

for (const [why, loaded, problem] of bad)
  test(`${why} is no body, and the words say nothing of it`, () => {
    const found = bodyOf(loaded)
    assert.ok('problem' in found)
    assert.match(found.problem, problem)
  })

const references: readonly (readonly [reference: string, shown: string])[] = [
  ['env:CLINIC_SECRET', 'env:CLINIC_SECRET'],
  ['file:/run/secrets/clinic', 'file:/run/secrets/clinic'],
  ['vault:clinic/2026', 'vault:clinic/2026'],
  ['s3://claims/1842.json', 's3://claims/1842.json'],
  ['https://store.example/1842?X-Signature=abc', 'https://store.example/1842?…'],
  ['https://store.example/1842#part', 'https://store.example/1842?…'],
  ['https://user:word@store.example/a@b', 'https://store.example/a@b'],
  ['whsec_c29tZWJvZHkgcHV0IHRoZSBzZWNyZXQgaGVyZQ==', 'whsec_…'],
  ['r'.repeat(200), 'r'.repeat(200)],
  ['r'.repeat(201), `${'r'.repeat(199)}…`],
]

for (const [reference, shown] of references)
  test(`a reference like ${reference.slice(0, 50)} is shown without what gives access`, () => {
    assert.equal(shownReference(reference), shown)
  })

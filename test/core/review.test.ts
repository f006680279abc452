import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Recipient, unreviewedAfter } from '../../src/core/review.ts'

const A: Recipient = { host: 'a.example', region: 'eu', processor: null }
const TRICKY = 'x"; host q → r; \\"'

const rows: readonly (readonly [
  why: string,
  waiting: string | null,
  before: Recipient,
  after: Recipient,
  wanted: string | null,
])[] = [
  ['nothing changes', null, A, A, null],
  ['another host', null, A, { ...A, host: 'b.example' }, 'host a.example → b.example'],
  ['another port', null, A, { ...A, host: 'a.example:8443' }, 'host a.example → a.example:8443'],
  ['an IPv6 host', null, A, { ...A, host: '[::1]:80' }, 'host a.example → [::1]:80'],
  [
    'all of it',
    null,
    A,
    { host: 'b.example', region: 'us', processor: 'Clinic Ltd' },
    'host a.example → b.example; region eu → us; processor none → "Clinic Ltd"',
  ],
  ['a region is given up', null, A, { ...A, region: null }, 'region eu → none'],
  ['a region that is called none', null, A, { ...A, region: 'none' }, 'region eu → "none"'],
  ['letters of any language', null, A, { ...A, region: 'Süd' }, 'region eu → Süd'],
  [
    'a second host keeps the reviewed one on the left',
    'host a.example → b.example',
    { ...A, host: 'b.example' },
    { ...A, host: 'c.example' },
    'host a.example → c.example',
  ],
  [
    'another setting joins what waits',
    'region us → eu',
    A,
    { ...A, host: 'b.example' },
    'host a.example → b.example; region us → eu',
  ],
  ['nothing more changes, and what waits goes on', 'region us → eu', A, A, 'region us → eu'],
  [
    'a way back still waits',
    'host a.example → b.example',
    { ...A, host: 'b.example' },
    A,
    'host a.example → a.example',
  ],
]

for (const [why, waiting, before, after, wanted] of rows)
  test(`what waits for a review: ${why}`, () => {
    assert.equal(unreviewedAfter(waiting, before, after), wanted)
  })

test('a value that looks like an entry is not taken for one when it comes back', () => {
  const first = unreviewedAfter(null, A, { ...A, processor: TRICKY })
  const second = unreviewedAfter(first, { ...A, processor: TRICKY }, { ...A, processor: 'B' })
  assert.equal(second, 'processor none → B')
  const back = unreviewedAfter(null, { ...A, processor: TRICKY }, { ...A, processor: 'B' })
  assert.equal(unreviewedAfter(back, A, { ...A, host: 'b' }), `host a.example → b; ${back}`)
})

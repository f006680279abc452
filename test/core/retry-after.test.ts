import assert from 'node:assert/strict'
import { test } from 'node:test'
import { retryAfterMs } from '../../src/core/retry-after.ts'

const NOON = 'Sun, 06 Nov 1994 12:00:00 GMT'
const DAY = 86_400_000

// case C55
const seconds: readonly (readonly [why: string, header: string | null, wanted: number | null])[] = [
  ['absent', null, null],
  ['seconds', '60', 60_000],
  ['nothing to wait for', '0', 0],
  ['leading zeros', '0060', 60_000],
  ['ten years', '315360000', 315_360_000_000],
  ['a negative number', '-5', null],
  ['a fraction', '1.5', null],
  ['a sign', '+3', null],
  ['a word', 'never', null],
  ['a list', '5, 60', null],
  ['empty', '', null],
  ['blanks', ' ', null],
  ['a blank before it', ' 60', null],
  ['a line break after it', '60\n', null],
  ['a unit', '60s', null],
  ['hexadecimal', '0x3c', null],
  ['an exponent', '1e3', null],
  ['infinity', 'Infinity', null],
  ['digits of another script', '٦٠', null],
  ['more digits than a number has', '9'.repeat(30), Number.MAX_SAFE_INTEGER],
  ['more digits than a double can hold', '9'.repeat(400), Number.MAX_SAFE_INTEGER],
]

for (const [why, header, wanted] of seconds) {
  test(`Retry-After as seconds: ${why}`, () => {
    assert.equal(retryAfterMs(header, NOON), wanted)
    assert.equal(retryAfterMs(header, null), wanted, 'no Date header is needed for seconds')
  })
}

// The same instant in the three forms of RFC 9110 §5.6.7, and everything that only looks like one of them.
const dates: readonly (readonly [why: string, header: string, wanted: number | null])[] = [
  ['IMF-fixdate', 'Sun, 06 Nov 1994 12:01:00 GMT', 60_000],
  ['RFC 850', 'Sunday, 06-Nov-94 12:01:00 GMT', 60_000],
  ['RFC 850, across the turn of the century', 'Wednesday, 06-Nov-02 12:00:00 GMT', 2_922 * DAY],
  ['asctime', 'Sun Nov  6 12:01:00 1994', 60_000],
  ['asctime with a day of two digits', 'Wed Nov 16 12:00:00 1994', 10 * DAY],
  ['the same instant', NOON, 0],
  ['a date that has passed', 'Sat, 05 Nov 1994 12:00:00 GMT', 0],
  ['RFC 850 that has passed long ago', 'Thursday, 01-Jan-70 00:00:00 GMT', 0],
  ['a leap day', 'Thu, 29 Feb 1996 12:00:00 GMT', 480 * DAY],
  ['a leap day that was none', 'Wed, 29 Feb 1995 12:00:00 GMT', null],
  ['31 February', 'Fri, 31 Feb 1995 12:00:00 GMT', null],
  ['day 0', 'Sun, 00 Nov 1994 12:00:00 GMT', null],
  ['day 32', 'Sun, 32 Nov 1994 12:00:00 GMT', null],
  ['31 November, RFC 850', 'Thursday, 31-Nov-94 12:00:00 GMT', null],
  ['31 November, asctime', 'Thu Nov 31 12:00:00 1994', null],
  ['hour 24', 'Sun, 06 Nov 1994 24:00:00 GMT', null],
  ['minute 60', 'Sun, 06 Nov 1994 12:60:00 GMT', null],
  ['a leap second', 'Sun, 06 Nov 1994 12:00:60 GMT', 60_000],
  ['second 61', 'Sun, 06 Nov 1994 12:00:61 GMT', null],
  ['another zone', 'Sun, 06 Nov 1994 12:01:00 CET', null],
  ['a numeric zone', 'Sun, 06 Nov 1994 12:01:00 +0000', null],
  ['no zone', 'Sun, 06 Nov 1994 12:01:00', null],
  ['small letters', 'sun, 06 nov 1994 12:01:00 gmt', null],
  ['a day of one digit', 'Sun, 6 Nov 1994 12:01:00 GMT', null],
  ['a year of two digits in the first form', 'Sun, 06 Nov 94 12:01:00 GMT', null],
  ['a day that does not exist by name', 'Xyz, 06 Nov 1994 12:01:00 GMT', null],
  ['a month that does not exist', 'Sun, 06 Nox 1994 12:01:00 GMT', null],
  ['ISO 8601', '1994-11-06T12:01:00Z', null],
  ['text after it', 'Sun, 06 Nov 1994 12:01:00 GMT, 60', null],
  ['a line break after it', 'Sun, 06 Nov 1994 12:01:00 GMT\n', null],
  ['a year, which Date.parse would take', '2030', 2_030_000],
]

for (const [why, header, wanted] of dates) {
  test(`Retry-After as a date: ${why}`, () => {
    assert.equal(retryAfterMs(header, NOON), wanted)
  })
}

test('a date is read against the Date of the response, in whichever form that is', () => {
  const until = 'Fri, 06 Nov 2026 12:01:00 GMT'
  for (const date of ['Fri, 06 Nov 2026 12:00:00 GMT', 'Friday, 06-Nov-26 12:00:00 GMT', 'Fri Nov  6 12:00:00 2026'])
    assert.equal(retryAfterMs(until, date), 60_000, date)
})

test('a date without a readable Date header is ignored, for no clock of ours may come into it', () => {
  for (const date of [null, '', 'yesterday', '784123200', '1994-11-06T12:00:00Z'])
    assert.equal(retryAfterMs('Sun, 06 Nov 1994 12:01:00 GMT', date), null, String(date))
})

test('every month is read as itself', () => {
  const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']
  const firsts = months.map((month) =>
    retryAfterMs(`Sun, 01 ${month} 1995 00:00:00 GMT`, 'Sun, 01 Jan 1995 00:00:00 GMT'),
  )
  assert.deepEqual(
    firsts.map((ms) => (ms ?? Number.NaN) / DAY),
    [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334],
  )
})

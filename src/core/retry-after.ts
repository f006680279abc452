// Retry-After (RFC 9110 §10.2.3): whole seconds or an HTTP-date. Anything else is ignored: Date.parse reads '-5' as 2001.

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']
const DAY = '(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)'
const LONG_DAY = '(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day'
const MONTH = `(${MONTHS.join('|')})`
const CLOCK = '(\\d{2}):(\\d{2}):(\\d{2})'

// RFC 9110 §5.6.7: the one that is sent today and the two that must still be read.
const IMF_FIXDATE = new RegExp(`^${DAY}, (\\d{2}) ${MONTH} (\\d{4}) ${CLOCK} GMT$`)
const RFC_850 = new RegExp(`^${LONG_DAY}, (\\d{2})-${MONTH}-(\\d{2}) ${CLOCK} GMT$`)
const ASCTIME = new RegExp(`^${DAY} ${MONTH} ([ \\d]\\d) ${CLOCK} (\\d{4})$`)

/** Milliseconds to wait, or null. A date is read against the response's own `Date`, so no clock of ours comes into it. */
export function retryAfterMs(header: string | null, dateHeader: string | null): number | null {
  if (header === null) return null
  if (/^\d+$/.test(header)) return Number(header) * 1000
  const until = httpDateMs(header)
  const from = dateHeader === null ? null : httpDateMs(dateHeader)
  return until === null || from === null ? null : Math.max(0, until - from)
}

/** Milliseconds since 1970 of an HTTP-date, or null when it is none. */
function httpDateMs(text: string): number | null {
  let m = IMF_FIXDATE.exec(text)
  if (m) return instantMs(Number(m[3]), m[2], m[1], m[4], m[5], m[6])
  m = RFC_850.exec(text)
  // Two digits: RFC 9110 wants the century that is at most 50 years ahead; a retry hint lives in this one.
  if (m) return instantMs(2000 + Number(m[3]), m[2], m[1], m[4], m[5], m[6])
  m = ASCTIME.exec(text)
  if (m) return instantMs(Number(m[6]), m[1], m[2], m[3], m[4], m[5])
  return null
}

type Part = string | undefined

function instantMs(year: number, month: Part, day: Part, hour: Part, minute: Part, second: Part): number | null {
  const at = Date.UTC(year, MONTHS.indexOf(month ?? ''), Number(day), Number(hour), Number(minute), Number(second))
  // A 31 February would silently become March; 60 is a leap second and may.
  const valid = Number(day) >= 1 && Number(hour) <= 23 && Number(minute) <= 59 && Number(second) <= 60
  return valid && new Date(at - Number(second) * 1000).getUTCDate() === Number(day) ? at : null
}

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

const FIFTY_YEARS_MS = 50 * 365.25 * 86_400_000

/** Milliseconds to wait, or null. A date is read against the response's own `Date`, so no clock of ours comes into it. */
export function retryAfterMs(header: string | null, dateHeader: string | null): number | null {
  if (header === null) return null
  // Bounded, for it is written into a bigint column: a number of 30 digits must not keep an outcome from being settled.
  if (/^\d+$/.test(header)) return Math.min(Number(header) * 1000, Number.MAX_SAFE_INTEGER)
  const from = dateHeader === null ? null : httpDateMs(dateHeader)
  const until = from === null ? null : httpDateMs(header, from)
  return until === null || from === null ? null : Math.max(0, until - from)
}

/** Milliseconds since 1970 of an HTTP-date, or null when it is none. */
function httpDateMs(text: string, from = Number.POSITIVE_INFINITY): number | null {
  let m = IMF_FIXDATE.exec(text)
  if (m) return instantMs(Number(m[3]), m[2], m[1], m[4], m[5], m[6])
  m = RFC_850.exec(text)
  // RFC 9110 §5.6.7: two digits that would be more than 50 years ahead of the response mean the century before.
  for (const century of m ? [2000, 1900] : []) {
    const at = instantMs(century + Number(m?.[3]), m?.[2], m?.[1], m?.[4], m?.[5], m?.[6])
    if (at === null || at - from <= FIFTY_YEARS_MS) return at
  }
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

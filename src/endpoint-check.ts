// What is right for an endpoint: its settings one by one, against each other, and what its references name here.
import { addressProblem, urlProblem } from './core/target.ts'
import { OutledgerError } from './errors.ts'
import { type ResolveSecret, secretValue, signingSecret } from './secrets.ts'
import type { EndpointSettings } from './sql/endpoint.ts'

/** Ours, those that say in what form the body is sent, and those of the connection (RFC 9110 §7.6.1): an endpoint's own may not replace them. */
const RESERVED =
  /^(content-(type|length|encoding|range)|transfer-encoding|(proxy-)?connection|host|accept-encoding|user-agent|idempotency-key|traceparent|authorization|expect|upgrade|http2-settings|keep-alive|te|trailer|webhook-.*|outledger-.*)$/

/** Its secrets mean something here. */
export async function checkReferences(settings: EndpointSettings, resolve: ResolveSecret): Promise<void> {
  await signingSecret(settings.secret, resolve)
  if (settings.authorization !== null) {
    if (UNPRINTABLE.test(await secretValue(settings.authorization, resolve)))
      throw wrong(
        `the value of authorization ${JSON.stringify(settings.authorization)} must be printable ASCII text of one line`,
      )
  }
}

const wrong = (message: string) => new OutledgerError('invalid_endpoint', message)

/** No header value may hold these. */
const UNPRINTABLE = /[^\t\x20-\x7e]/

export function checkWord(field: string, value: string, limit: number): void {
  if (value.length > limit || /[^A-Za-z0-9._:-]/.test(value))
    throw wrong(`${field} ${JSON.stringify(value.slice(0, 100))} must be 1 to ${limit} of A-Z a-z 0-9 . _ : -`)
}

/** Its settings are right, each and together. */
export function crossCheck(s: EndpointSettings): void {
  checkWord('class', s.class, 64)
  for (const [name, value] of Object.entries({ region: s.region, processor: s.processor }))
    if (value !== null && (value.length > 200 || value.includes('\0') || !value.isWellFormed()))
      throw wrong(`${name} has ${value.length} characters; it must be up to 200 of text`)
  const problem = urlProblem(s.url, s.allowInsecure) ?? (s.allowPrivate ? null : addressProblem(new URL(s.url)))
  if (problem !== null) throw wrong(`url of endpoint ${s.name} ${problem}`)
  checkLength('url', s.url, URL_LIMIT)
  if (s.keyWindowMs < s.horizonMs)
    throw wrong(
      `keyWindowMs ${s.keyWindowMs} is shorter than horizonMs ${s.horizonMs}: retries would outlive the receiver's memory of the key; shorten horizonMs`,
    )
  if (s.partitions > s.concurrency)
    throw wrong(
      `partitions ${s.partitions} exceeds concurrency ${s.concurrency}: each lane needs at least one request; lower partitions`,
    )
  if (s.headers !== null) checkHeaders(s.headers)
  if (s.statusPolicy !== null) checkStatusPolicy(s.statusPolicy)
}

function entriesOf(field: string, text: string, what: string): [string, unknown][] {
  let object: unknown
  try {
    object = JSON.parse(text)
  } catch {
    object = null
  }
  if (typeof object !== 'object' || object === null || Array.isArray(object))
    throw wrong(`${field} must be a JSON object of ${what}`)
  return Object.entries(object)
}

function checkStatusPolicy(text: string): void {
  for (const [status, verdict] of entriesOf('statusPolicy', text, 'HTTP statuses and what each means'))
    if (!/^[3-5]\d\d$/.test(status) || status === '409' || (verdict !== 'retry' && verdict !== 'dead'))
      throw wrong(
        `statusPolicy has ${JSON.stringify(status.slice(0, 100))}: ${JSON.stringify(verdict)?.slice(0, 100)}; statuses are 300 to 599 without 409, which has on409, and each means "retry" or "dead"`,
      )
}

/** Receivers refuse more, with 414 or 431, and that would end every delivery. */
const URL_LIMIT = 2_000
const HEADERS_LIMIT = 8_000

function checkLength(field: string, { length }: string, limit: number): void {
  if (length > limit) throw wrong(`${field} has ${length} characters; it must be up to ${limit}`)
}

function checkHeaders(text: string): void {
  checkLength('headers', text, HEADERS_LIMIT)
  for (const [name, value] of entriesOf('headers', text, 'names and values')) {
    if (!/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}$/.test(name))
      throw wrong(`header ${JSON.stringify(name.slice(0, 100))} is no header name`)
    if (RESERVED.test(name.toLowerCase())) throw wrong(`header ${name} is ours to set; remove it`)
    if (typeof value !== 'string' || UNPRINTABLE.test(value))
      throw wrong(`the value of header ${name} must be printable ASCII text`)
  }
}

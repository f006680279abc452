// Endpoints as people put and list them.
import { userInfo } from 'node:os'
import { urlProblem } from './core/target.ts'
import { ENDPOINT_OPTIONS } from './endpoint-options.ts'
import { OutledgerError } from './errors.ts'
import { completeOptions, type Given } from './options.ts'
import { type ResolveSecret, resolveSecret, signingSecret } from './secrets.ts'
import {
  type EndpointRow,
  type EndpointSettings,
  endpointByName,
  listEndpoints as listRows,
  putEndpoint as putRow,
} from './sql/endpoint.ts'
import { anyExecutor, type Handle } from './transaction.ts'

export type EndpointGiven = Partial<Given<typeof ENDPOINT_OPTIONS>> & { readonly name: string }

/** Our headers; an endpoint's own may not replace them. */
const RESERVED =
  /^(content-type|content-length|transfer-encoding|connection|host|accept-encoding|user-agent|idempotency-key|traceparent|authorization|expect|upgrade|keep-alive|te|trailer|webhook-.*|outledger-.*)$/

/**
 * Create an endpoint, or change the settings that are given and keep the others. What was and what is goes on record.
 *
 * @throws OutledgerError `invalid_endpoint`, or `secret_unresolvable` when the reference means nothing here
 */
export async function putEndpoint(
  db: Handle,
  given: EndpointGiven,
  { by = userInfo().username, resolve = resolveSecret }: { by?: string; resolve?: ResolveSecret } = {},
): Promise<EndpointRow> {
  const executor = anyExecutor(db)
  const { name } = completeOptions({ name: ENDPOINT_OPTIONS.name }, { name: given.name }, 'invalid_endpoint')
  checkWord('name', name, 200)
  // Read, merged and written under the version that was read; who came in between is read again and kept.
  for (;;) {
    const current = await endpointByName(executor, name)
    const settings = merged(current, given)
    await check(settings, resolve)
    const row = await putRow(executor, settings, { by, version: current?.version ?? null })
    if (row !== null) return row
  }
}

const known = new Set(Object.keys(ENDPOINT_OPTIONS))

function merged(current: EndpointRow | null, given: EndpointGiven): EndpointSettings {
  const before = Object.fromEntries(Object.entries(current ?? {}).filter(([name]) => known.has(name)))
  const all = { ...before, ...withoutUndefined(given) }
  const settings = completeOptions(ENDPOINT_OPTIONS, all, 'invalid_endpoint') as EndpointSettings
  crossCheck(settings)
  // As it will be dialled: WHATWG parsing reads many spellings, and people shall see what was read.
  return { ...settings, url: new URL(settings.url).href }
}

async function check(settings: EndpointSettings, resolve: ResolveSecret): Promise<void> {
  await signingSecret(settings.secret, resolve)
  if (settings.authorization !== null) {
    if (UNPRINTABLE.test(await resolve(settings.authorization)))
      throw wrong(
        `the value of authorization ${JSON.stringify(settings.authorization)} must be printable ASCII text of one line`,
      )
  }
}

/** All endpoints by name, retired ones last. Secrets appear only as references. */
export function listEndpoints(db: Handle): Promise<EndpointRow[]> {
  return listRows(anyExecutor(db))
}

const withoutUndefined = (given: object): object =>
  Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined))

const wrong = (message: string) => new OutledgerError('invalid_endpoint', message)

/** No header value may hold these. */
const UNPRINTABLE = /[^\t\x20-\x7e]/

function checkWord(field: string, value: string, limit: number): void {
  if (value.length > limit || /[^A-Za-z0-9._:-]/.test(value))
    throw wrong(`${field} ${JSON.stringify(value.slice(0, 100))} must be 1 to ${limit} of A-Z a-z 0-9 . _ : -`)
}

function crossCheck(s: EndpointSettings): void {
  checkWord('class', s.class, 64)
  const problem = urlProblem(s.url, s.allowInsecure)
  if (problem !== null) throw wrong(`url of endpoint ${s.name} ${problem}`)
  if (s.keyWindowMs < s.horizonMs)
    throw wrong(
      `keyWindowMs ${s.keyWindowMs} is shorter than horizonMs ${s.horizonMs}: retries would outlive the receiver's memory of the key; shorten horizonMs`,
    )
  if (s.partitions > s.concurrency)
    throw wrong(
      `partitions ${s.partitions} exceeds concurrency ${s.concurrency}: each lane needs at least one request; lower partitions`,
    )
  if (s.headers !== null) checkHeaders(s.headers)
}

function checkHeaders(text: string): void {
  let headers: unknown
  try {
    headers = JSON.parse(text)
  } catch {
    headers = null
  }
  if (typeof headers !== 'object' || headers === null || Array.isArray(headers))
    throw wrong('headers must be a JSON object of names and values')
  for (const [name, value] of Object.entries(headers)) {
    if (!/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}$/.test(name))
      throw wrong(`header ${JSON.stringify(name.slice(0, 100))} is no header name`)
    if (RESERVED.test(name.toLowerCase())) throw wrong(`header ${name} is ours to set; remove it`)
    if (typeof value !== 'string' || UNPRINTABLE.test(value))
      throw wrong(`the value of header ${name} must be printable ASCII text`)
  }
}

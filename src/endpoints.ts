// Endpoints as people put, list and show them.
import { unreviewedAfter } from './core/review.ts'
import { checkReferences, checkWord, crossCheck } from './endpoint-check.ts'
import { ENDPOINT_OPTIONS } from './endpoint-options.ts'
import { OutledgerError } from './errors.ts'
import { completeOptions, type Given } from './options.ts'
import { type By, byline } from './person.ts'
import { type ResolveSecret, resolveSecret } from './secrets.ts'
import { type EndpointRow, type EndpointSettings, endpointByName, listEndpoints as listRows } from './sql/endpoint.ts'
import { putEndpoint as putRow } from './sql/endpoint-put.ts'
import type { Operation } from './sql/get.ts'
import { type OpenCounts, openCounts } from './sql/open.ts'
import { operationsOn } from './sql/operation.ts'
import { anyExecutor, type Handle } from './transaction.ts'

export type EndpointGiven = Partial<Given<typeof ENDPOINT_OPTIONS>> & { readonly name: string }

export interface PutOptions extends By {
  /** Turns a secret reference into its value. */
  readonly resolve?: ResolveSecret
}

/**
 * Create an endpoint, or change the settings that are given and keep the others. What was and what is goes on record.
 *
 * Another host, region or processor is another recipient: after such a change the endpoint is paused and `unreviewed`
 * says what changed, until `reviewEndpoint`. A retired endpoint comes back into service. A put that changes nothing is on
 * record as well, and leaves the version as it was.
 *
 * @throws OutledgerError `invalid_endpoint`, or `secret_unresolvable` when the reference means nothing here
 */
export async function putEndpoint(
  db: Handle,
  given: EndpointGiven,
  { resolve = resolveSecret, ...person }: PutOptions = {},
): Promise<EndpointRow> {
  const executor = anyExecutor(db)
  const { by, why } = byline(person)
  const { name } = completeOptions({ name: ENDPOINT_OPTIONS.name }, { name: given.name }, 'invalid_endpoint')
  checkWord('name', name, 200)
  // Read, merged and written under the version that was read; who came in between is read again and kept.
  for (;;) {
    const current = await endpointByName(executor, name)
    const settings = merged(current, given)
    await checkReferences(settings, resolve)
    const unreviewed =
      current === null ? null : unreviewedAfter(current.unreviewed, recipient(current), recipient(settings))
    const version = current?.version ?? null
    const row = await putRow(executor, settings, { by, why, version, unreviewed, changes: differs(current, settings) })
    if (row !== null) return row
  }
}

const known = new Set(Object.keys(ENDPOINT_OPTIONS))

const differs = (current: EndpointRow | null, settings: EndpointSettings): boolean =>
  current === null ||
  current.removedAt !== null ||
  [...known].some((name) => current[name as keyof EndpointSettings] !== settings[name as keyof EndpointSettings])

function merged(current: EndpointRow | null, given: EndpointGiven): EndpointSettings {
  const before = Object.fromEntries(Object.entries(current ?? {}).filter(([name]) => known.has(name)))
  const all = { ...before, ...withoutUndefined(given) }
  const settings = completeOptions(ENDPOINT_OPTIONS, all, 'invalid_endpoint') as EndpointSettings
  crossCheck(settings)
  // As it will be dialled: WHATWG parsing reads many spellings, and people shall see what was read.
  return { ...settings, url: new URL(settings.url).href }
}

const withoutUndefined = (given: object): object =>
  Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined))

const recipient = ({ url, region, processor }: EndpointSettings) => ({ host: new URL(url).host, region, processor })

/** All endpoints by name, retired ones last. Secrets appear only as references. */
export function listEndpoints(db: Handle): Promise<EndpointRow[]> {
  return listRows(anyExecutor(db))
}

/** An endpoint with its settings, what is open for it, and what was done to it last. */
export interface EndpointShown extends EndpointRow {
  readonly open: OpenCounts
  /** The last ten, latest first. */
  readonly operations: readonly Operation[]
}

/**
 * Everything there is to say of one endpoint, also of a retired one. Secrets appear only as references.
 *
 * @throws OutledgerError `unknown_endpoint`
 */
export async function showEndpoint(db: Handle, name: string): Promise<EndpointShown> {
  checkWord('name', name, 200)
  const executor = anyExecutor(db)
  const row = await endpointByName(executor, name)
  if (row === null) throw new OutledgerError('unknown_endpoint', `endpoint ${JSON.stringify(name)} does not exist`)
  const open = await openCounts(executor, row.id)
  return { ...row, open, operations: await operationsOn(executor, name, { limit: 10 }) }
}

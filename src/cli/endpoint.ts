// outledger endpoint put | list

import { ENDPOINT_OPTIONS } from '../endpoint-options.ts'
import { listEndpoints, putEndpoint } from '../endpoints.ts'
import type { EndpointRow } from '../sql/endpoint.ts'
import { withDatabase } from './database.ts'
import { databaseUrl, helpOf, parse, UsageError } from './usage.ts'

const { name: _, ...SETTINGS } = ENDPOINT_OPTIONS
const BY = {
  by: { type: 'string', default: null, doc: 'Who changes it, for the record; default the current user' },
} as const

export async function endpoint([verb, ...args]: string[]): Promise<number> {
  if (verb === 'put') return put(args)
  if (verb === 'list') return list(args)
  if (verb === '--help' || verb === '-h') return put(['--help'])
  throw new UsageError('usage: outledger endpoint put NAME --url URL --secret REFERENCE …, or outledger endpoint list')
}

async function put(args: string[]): Promise<number> {
  const parsed = parse(args, { ...SETTINGS, ...BY }, { names: 1 })
  if (parsed.help) {
    const title = `outledger endpoint put NAME [options] [--json]: create an endpoint, or change what is given and keep the rest

  outledger endpoint put clinic --url https://clinic.example/hooks --secret env:CLINIC_SECRET`
    console.log(helpOf(title, { ...SETTINGS, ...BY }))
    return 0
  }
  const [name] = parsed.positionals
  if (name === undefined) throw new UsageError('endpoint put takes one NAME before its options')
  const { databaseUrl: _, by, ...given } = parsed.values
  const row = await withDatabase(databaseUrl(parsed), (db) =>
    putEndpoint(db, { ...given, name }, by === undefined ? {} : { by: String(by) }),
  )
  console.log(parsed.json ? JSON.stringify(row) : `endpoint ${row.name} → ${row.url} (version ${row.version})`)
  return 0
}

async function list(args: string[]): Promise<number> {
  const parsed = parse(args, {})
  if (parsed.help) {
    console.log(
      helpOf('outledger endpoint list [--json]: all endpoints, retired ones last; secrets only as references', {}),
    )
    return 0
  }
  const rows = await withDatabase(databaseUrl(parsed), listEndpoints)
  if (parsed.json) console.log(JSON.stringify(rows))
  else if (rows.length === 0) console.log('no endpoints; create one with "outledger endpoint put"')
  else for (const row of rows) console.log(line(row))
  return 0
}

function line(row: EndpointRow): string {
  const notes = [
    row.allowInsecure && 'allowInsecure',
    row.allowPrivate && 'allowPrivate',
    row.pausedAt && `paused: ${row.pausedReason}`,
    row.removedAt && 'removed',
  ]
  return [row.name.padEnd(24), row.class.padEnd(16), row.url, ...notes.filter(Boolean)].join('  ')
}

// outledger endpoint put | list
import { type EndpointGiven, listEndpoints, putEndpoint } from '../endpoints.ts'
import type { By } from '../person.ts'
import type { EndpointRow } from '../sql/endpoint.ts'
import { withDatabase } from './database.ts'
import { answer, harmless, instantText, type Screen, table } from './print.ts'
import { databaseUrl, type Parsed } from './usage.ts'

export async function put(parsed: Parsed, screen: Screen): Promise<number> {
  const { by, why, ...given } = parsed.values as Partial<EndpointGiven> & By
  const row = await withDatabase(databaseUrl(parsed), (db) =>
    putEndpoint(db, { ...given, name: parsed.subject }, { by, why }),
  )
  const waits = row.unreviewed === null ? '' : `\npaused until "outledger endpoint review": ${harmless(row.unreviewed)}`
  answer(screen, parsed, row, () => `endpoint ${row.name} → ${row.url} (version ${row.version})${waits}`)
  return 0
}

export async function list(parsed: Parsed, screen: Screen): Promise<number> {
  const rows = await withDatabase(databaseUrl(parsed), listEndpoints)
  answer(screen, parsed, rows, () =>
    rows.length === 0
      ? 'no endpoints; create one with "outledger endpoint put"'
      : table(
          screen,
          [
            { title: 'endpoint', of: ({ name }) => name },
            { title: 'class', of: (row) => row.class },
            { title: 'url', of: ({ url }) => url },
            { title: 'notes', of: notes, colour: () => 'yellow' },
          ],
          rows,
        ),
  )
  return 0
}

const notes = (row: EndpointRow): string =>
  [...stops(row), ...(row.allowInsecure ? ['allowInsecure'] : []), ...(row.allowPrivate ? ['allowPrivate'] : [])].join(
    ', ',
  )

/** What keeps deliveries from going out. */
export const stops = (row: EndpointRow): string[] =>
  [
    row.removedAt && 'removed',
    row.pausedReason && `paused: ${row.pausedReason}`,
    row.backoffUntil && `backing off until ${instantText(row.backoffUntil)}`,
    row.halfOpen
      ? 'tripped, one delivery at a time probes it'
      : row.trippedUntil && `tripped until ${instantText(row.trippedUntil)}`,
  ].filter((stop) => stop !== null)

// outledger endpoint put | list
import { listEndpoints, putEndpoint } from '../endpoints.ts'
import type { EndpointRow } from '../sql/endpoint.ts'
import { withDatabase } from './database.ts'
import { answer, type Screen, table } from './print.ts'
import { databaseUrl, type Parsed } from './usage.ts'

export async function put(parsed: Parsed, screen: Screen): Promise<number> {
  const { by, ...given } = parsed.values
  const row = await withDatabase(databaseUrl(parsed), (db) =>
    putEndpoint(db, { ...given, name: parsed.subject }, by === undefined ? {} : { by: String(by) }),
  )
  answer(screen, parsed, row, () => `endpoint ${row.name} → ${row.url} (version ${row.version})`)
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
  [
    row.removedAt && 'removed',
    row.pausedAt && `paused: ${row.pausedReason}`,
    row.allowInsecure && 'allowInsecure',
    row.allowPrivate && 'allowPrivate',
  ]
    .filter(Boolean)
    .join(', ')

// outledger endpoint show
import { ENDPOINT_OPTIONS } from '../endpoint-options.ts'
import { showEndpoint } from '../endpoints.ts'
import type { Operation } from '../sql/get.ts'
import type { OpenCounts } from '../sql/open.ts'
import { withDatabase } from './database.ts'
import { stops } from './endpoint.ts'
import { answer, facts, instantText, type Screen, table } from './print.ts'
import { databaseUrl, flagOf, type Parsed } from './usage.ts'

const { name: _, ...SETTINGS } = ENDPOINT_OPTIONS

export async function show(parsed: Parsed, screen: Screen): Promise<number> {
  const row = await withDatabase(databaseUrl(parsed), (db) => showEndpoint(db, parsed.subject))
  answer(screen, parsed, row, () =>
    [
      facts(screen, [
        ['endpoint', `${row.name} (version ${row.version})`],
        ['state', stops(row).join('; ') || 'open'],
        ['unreviewed', row.unreviewed],
        ['open deliveries', counted(row.open)],
        ...row.previousSecrets.map((one): [string, string] => [
          'previous secret',
          `${one.secret} until ${instantText(one.until)}`,
        ]),
      ]),
      facts(
        screen,
        Object.keys(SETTINGS).map((name) => [flagOf(name), text(row[name as keyof typeof SETTINGS] ?? '–')]),
      ),
      table(
        screen,
        [
          { title: 'at', of: ({ at }) => instantText(at) },
          { title: 'who', of: ({ who }) => who },
          { title: 'operation', of: ({ verb }) => verb },
          { title: 'why', of: ({ why }) => why },
          { title: 'what', of: what },
        ],
        row.operations,
      ),
    ].join('\n\n'),
  )
  return 0
}

function counted({ total, ...counts }: OpenCounts): string {
  const parts = Object.entries(counts).filter(([, n]) => n > 0)
  return total === 0 ? '0' : `${total} (${parts.map(([word, n]) => `${n} ${word}`).join(', ')})`
}

const text = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value ?? null))

/** Columns that a change touches beside what it is about. */
const ASIDE = new Set(['version', 'updated_at', 'paused_at', 'removed_at'])

/** `timeout_ms null → 5000`; of a ping how it went; nothing of an endpoint's creation. */
function what({ detail }: Operation): string {
  const {
    old,
    new: now,
    outcome,
    reason,
  } = (detail ?? {}) as Record<string, Record<string, unknown> | null | undefined>
  if (outcome !== undefined) return [outcome, reason].filter((word) => word !== null).join(' · ')
  if (!old || !now) return ''
  return Object.entries(now)
    .filter(([column, value]) => !ASIDE.has(column) && text(value) !== text(old[column]))
    .map(([column, value]) => `${column} ${text(old[column])} → ${text(value)}`)
    .join(', ')
}

// outledger list
import { list as listDeliveries } from '../look.ts'
import type { Delivery } from '../sql/list.ts'
import { withDatabase } from './database.ts'
import { answer, type Column, paint, type Screen, secondText, table } from './print.ts'
import { isDoubtful, stateColour } from './show.ts'
import { databaseUrl, type Parsed } from './usage.ts'

const COLUMNS: readonly Column<Delivery>[] = [
  { title: 'written', of: ({ discoveredAt }) => secondText(discoveredAt), whole: true },
  // Whole, so that it can be given to "outledger show".
  { title: 'key', of: ({ key }) => key, whole: true },
  { title: 'endpoint', of: ({ endpoint }) => endpoint },
  { title: 'type', of: ({ type }) => type },
  { title: 'attempts', of: ({ attempts }) => attempts, right: true },
  { title: 'last', of: ({ lastStatus, lastOutcome }) => lastStatus ?? lastOutcome ?? '-', right: true },
  { title: 'state', of: standing, colour: (row) => stateColour(row) ?? (isDoubtful(row) ? 'yellow' : undefined) },
]

/** The state, or while it is open what says more than the state. */
function standing(row: Delivery): string {
  const end = row.terminalReason === null ? row.state : `${row.state}: ${row.terminalReason}`
  return `${row.whyNotYet ?? end}${isDoubtful(row) ? ' · maybe applied' : ''}`
}

export async function list(parsed: Parsed, screen: Screen): Promise<number> {
  const rows = await withDatabase(databaseUrl(parsed), (db) => listDeliveries(db, parsed.values))
  answer(screen, parsed, rows, () => {
    const last = rows.at(-1)
    if (last === undefined) return 'no delivery matches'
    const more = rows.length >= Number(parsed.values.limit ?? 100)
    return table(screen, COLUMNS, rows) + (more ? `\n${paint(screen, 'dim', `more: add --before ${last.id}`)}` : '')
  })
  return 0
}

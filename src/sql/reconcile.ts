// Business rows against the ledger: the app's own query in pages, what the ledger lacks of them, and the record of a run.
import { withoutEnd } from '../core/statement.ts'
import { arrayLiteral, type Executor, type Row } from './executor.ts'

/** The app's query, and the column of it that is unique and that it can be read in the order of. */
export interface Expected {
  readonly query: string
  readonly pageBy: string
}

// On lines of its own, for the query may end with a comment.
const rowsOf = ({ query }: Expected): string => `(\n${withoutEnd(query)}\n) e`
const column = ({ pageBy }: Expected): string => `e."${pageBy.replaceAll('"', '""')}"`

/**
 * The type of the column to page by, and whether it is null somewhere: what is null has no place in an order. The type goes
 * by its own name, for `character` and `bit` are those of length 1.
 */
export async function inspectExpected(db: Executor, expected: Expected): Promise<{ type: string; blank: boolean }> {
  const [row] = await db.run<{ type: string; blank: boolean }>(
    `select (select format('%I.%I', n.nspname, t.typname)
             from pg_catalog.pg_type t join pg_catalog.pg_namespace n on n.oid = t.typnamespace
             where t.oid = pg_typeof((select ${column(expected)} from ${rowsOf(expected)} limit 0))) as type,
            exists (select from ${rowsOf(expected)} where ${column(expected)} is null) as blank`,
    [],
  )
  return row as { type: string; blank: boolean }
}

export interface Position {
  /** Of the column to page by, as inspectExpected has it. */
  readonly type: string
  /** Of the last row seen, as text; null: from the beginning. */
  readonly after: string | null
  readonly limit: number
}

/** As JSON they are ISO text whatever the DateStyle, of which some write abbreviations that stand for several time zones. */
const INSTANT = /^pg_catalog\.(?:timestamptz|timestamp|date)$/

/** Rows after a position, each with its own. A statement of its own: no snapshot is held while the others are looked at. */
export async function readExpected(
  db: Executor,
  expected: Expected,
  { type, after, limit }: Position,
): Promise<{ readonly row: Row; readonly position: string }[]> {
  const by = column(expected)
  const text = INSTANT.test(type) ? `to_json(${by}) #>> '{}'` : `${by}::text`
  const rows = await db.run<Row>(
    `select e.*, ${text} as outledger_position from ${rowsOf(expected)}
     ${after === null ? '' : `where ${by} > $1::text::${type}`}
     order by ${by} limit ${limit}`,
    after === null ? [] : [after],
  )
  // By place: the app's client may rename columns.
  return rows.map((all) => {
    const columns = Object.entries(all)
    const [, position] = columns.pop() as [string, unknown]
    return { row: Object.fromEntries(columns), position: String(position) }
  })
}

export interface Wanted {
  readonly key: string
  readonly endpoint: string
  readonly type: string
  readonly payloadRef: string | null
  /** Hexadecimal; null where there is only a reference. */
  readonly payloadSha256: string | null
}

/** Of the wanted one with this number, from 1: it is in no delivery and under no tombstone, or it is there with another … */
export interface Gap {
  readonly number: number
  readonly gap: 'missing' | 'endpoint' | 'type' | 'payload'
}

// The same conflicts as in outbox.enqueue. Each key is looked up by itself: no plan may join the batch to all of history, or
// hash all of it, as it does for NOT EXISTS; therefore LIMIT.
const gapsText = `
select k.number::int as number, coalesce(d.conflict, 'missing') as gap
from unnest($1::text::text[], $2::text::text[], $3::text::text[], $4::text::text[], $5::text::text[])
  with ordinality as k(key, endpoint, type, payload_ref, sha256, number)
left join lateral (
  select o.id, case when not exists (select from outbox.endpoint e where e.id = o.endpoint_id and e.name = k.endpoint) then 'endpoint'
                    when o.type <> k.type then 'type'
                    when o.payload_ref is distinct from k.payload_ref and o.erased_at is null
                      or o.payload_sha256 <> decode(k.sha256, 'hex') then 'payload' end as conflict
  from outbox.delivery o where o.key = k.key limit 1) d on true
where d.conflict is not null
   or d.id is null and (
     select t.delivery_id from outbox.tombstone t
     where t.key_sha256 = sha256(convert_to(k.key, 'UTF8')) and t.delete_after > statement_timestamp() limit 1) is null
order by k.number`

/** What is not as wanted; nothing of those that are. */
export function gaps(db: Executor, wanted: readonly Wanted[]): Promise<Gap[]> {
  return db.run<Gap>(gapsText, [
    arrayLiteral(wanted.map((w) => w.key)),
    arrayLiteral(wanted.map((w) => w.endpoint)),
    arrayLiteral(wanted.map((w) => w.type)),
    arrayLiteral(wanted.map((w) => w.payloadRef)),
    arrayLiteral(wanted.map((w) => w.payloadSha256)),
  ])
}

/** Put a run on record; returns its number. */
export async function beginRun(db: Executor, name: string): Promise<string> {
  const [row] = await db.run<{ id: string }>(
    'insert into outbox.reconciliation (name) values ($1) returning id::text as id',
    [name],
  )
  return (row as { id: string }).id
}

export interface Counts {
  readonly checked: number
  readonly missing: number
  readonly enqueued: number
  readonly mismatched: number
}

const noteText = `
update outbox.reconciliation r
set checked = $2::text::bigint, missing = $3::text::bigint, enqueued = $4::text::bigint, mismatched = $5::text::bigint,
    finished_at = case when $6::text::boolean then clock_timestamp() end, error = $7::text
where r.id = $1::text::bigint`

/** How far a run has come; of one that was killed, the last page stays on record, and no end. */
export async function noteRun(
  db: Executor,
  { id, checked, missing, enqueued, mismatched }: Counts & { readonly id: string },
  { finished = false, error = null as string | null } = {},
): Promise<void> {
  await db.run(noteText, [id, ...[checked, missing, enqueued, mismatched, finished].map(String), error])
}

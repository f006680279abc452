// What the code must know of the database before it works with it.
import type { Executor } from './executor.ts'

export interface Condition {
  readonly encoding: string
  readonly isolation: string
  readonly version: number
  readonly role: string
  /** There is a schema `outbox`. */
  readonly present: boolean
  /** It holds something. */
  readonly schema: boolean
  /** Our migration table exists in it, and looks like it. */
  readonly ours: boolean
  /** It says of which major it is: since the third migration. */
  readonly versioned: boolean
}

const text = `
select current_setting('server_encoding') as encoding, current_setting('transaction_isolation') as isolation,
       current_setting('server_version_num')::int as version, current_user::text as role,
       to_regnamespace('outbox') is not null as present,
       exists (select from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace where n.nspname = 'outbox')
         or exists (select from pg_catalog.pg_proc p join pg_catalog.pg_namespace n on n.oid = p.pronamespace where n.nspname = 'outbox') as schema,
       (select count(*) = 2 from pg_catalog.pg_attribute a
        where a.attrelid = to_regclass('outbox.migration') and a.attname in ('hash', 'created_at')) as ours,
       to_regclass('outbox.version') is not null as versioned`

export async function inspect(db: Executor): Promise<Condition> {
  const [row] = await db.run<Condition>(text, [])
  return row as Condition
}

export interface Applied {
  /** How many of our migrations the database has. */
  readonly count: number
  /** When the last of them was made, in epoch milliseconds: what drizzle knows a migration by. */
  readonly last: number
  /** Null before there were majors: then it is the first. */
  readonly major: number | null
}

const NOTHING: Applied = { count: 0, last: 0, major: null }

const appliedText = (major: string) =>
  `select count(*)::int as count, coalesce(max(created_at), 0)::float8 as last, ${major} as major from outbox.migration`

/** What has been applied to a database in this condition. */
export async function applied(db: Executor, { ours, versioned }: Condition): Promise<Applied> {
  if (!ours) return NOTHING
  const major = versioned ? '(select v.major from outbox.version v)' : 'null::int'
  const [row] = await db.run<Applied>(appliedText(major), [])
  return row as Applied
}

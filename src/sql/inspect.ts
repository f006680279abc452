// What the code must know of the database before it works with it.
import type { Executor } from './executor.ts'

export interface Condition {
  readonly encoding: string
  readonly isolation: string
  readonly version: number
  readonly role: string
  /** A schema `outbox` exists and holds something. */
  readonly schema: boolean
  /** Our migration table exists in it, and looks like it. */
  readonly ours: boolean
}

const text = `
select current_setting('server_encoding') as encoding, current_setting('transaction_isolation') as isolation,
       current_setting('server_version_num')::int as version, current_user::text as role,
       exists (select from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace where n.nspname = 'outbox')
         or exists (select from pg_catalog.pg_proc p join pg_catalog.pg_namespace n on n.oid = p.pronamespace where n.nspname = 'outbox') as schema,
       (select count(*) = 2 from pg_catalog.pg_attribute a
        where a.attrelid = to_regclass('outbox.migration') and a.attname in ('hash', 'created_at')) as ours`

export async function inspect(db: Executor): Promise<Condition> {
  const [row] = await db.run<Condition>(text, [])
  return row as Condition
}

/** How many of our migrations the database has. */
export async function migrationCount(db: Executor): Promise<number> {
  const [row] = await db.run<{ n: number }>('select count(*)::int as n from outbox.migration', [])
  return row?.n ?? 0
}

/** One migration at a time, whoever starts it: held by the session that migrates. The number is ours alone. */
export async function lockMigration(db: Executor): Promise<void> {
  await db.run(`select pg_advisory_lock(hashtextextended('outledger migrate', 0))`, [])
}

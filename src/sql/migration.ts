// The statements that migrate, in their order: `migrate` runs them, `migrate --print` prints them.

/** READ COMMITTED, so that what another migrator did while this one waited for it is seen. */
export const TRANSACTION = 'isolation level read committed'

/**
 * Taking turns: held to the end of the transaction, which works through a pooler too. Another migrator is waited for as
 * long as it takes; for the lock of a table no longer than this, because all later statements on it queue up behind us.
 */
export const TURN = [
  'set local lock_timeout = 0',
  `select pg_advisory_xact_lock(hashtextextended('outledger migrate', 0))`,
  `set local lock_timeout = '5s'`,
]

/** The schema and drizzle's own table, as drizzle's migrator creates them. */
const TABLE =
  'create table if not exists outbox.migration (id serial primary key, hash text not null, created_at bigint)'
const SCHEMA = 'create schema if not exists outbox'

/** Nothing to do where there is a schema; and it would ask for a right on the database that its owner need not have. */
const CREATES_SCHEMA = /^create schema if not exists "?outbox"?;?$/i

export interface Migration {
  readonly statements: readonly string[]
  readonly hash: string
  /** When it was made, in epoch milliseconds; they ascend. */
  readonly made: number
}

/** The statements of one migration, and the row that says so, as drizzle's migrator writes it. */
export const applying = ({ statements, hash, made }: Migration): string[] => [
  ...statements.map((statement) => statement.trim()).filter((statement) => !CREATES_SCHEMA.test(statement)),
  `insert into outbox.migration (hash, created_at) values ('${hash}', ${made})`,
]

/** Printed for a database that nobody has looked at: what is there under our name and is not ours stays as it is. */
const OURS_ONLY = `do $ours$ begin
  if to_regclass('outbox.migration') is null and exists (select from pg_class c where c.relnamespace = to_regnamespace('outbox')) then
    raise exception 'outledger: the database has a schema "outbox" that is not ours; rename it (ALTER SCHEMA outbox RENAME TO …)';
  end if;
end $ours$`

/** What must be there before the first migration. */
export const prepare = ({ schema }: { schema: boolean }): string[] => [...(schema ? [] : [SCHEMA]), TABLE]

/** One transaction as text, for a database whose last migration is `last` (0: it has none yet, and not even a `schema`). */
export function transactionText(
  migrations: readonly Migration[],
  { last, schema }: { last: number; schema: boolean },
): string {
  const guard = `do $guard$ begin
  if (select coalesce(max(created_at), 0) from outbox.migration) <> ${last} then
    raise exception 'outledger: this was printed for another state of schema outbox; print it again';
  end if;
end $guard$`
  const statements = [
    ...[`begin ${TRANSACTION}`, `set local client_encoding = 'UTF8'`, ...TURN],
    ...[...(last === 0 ? [OURS_ONLY, ...prepare({ schema })] : []), guard],
    ...[...migrations.flatMap(applying), 'commit'],
  ]
  return statements.map((statement) => (statement.endsWith(';') ? statement : `${statement};`)).join('\n')
}

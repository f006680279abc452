// Bring the schema `outbox` to this version; several may start at once.
import { fileURLToPath } from 'node:url'
import { readMigrationFiles } from 'drizzle-orm/migrator'
import { drizzle } from 'drizzle-orm/postgres-js'
import { migrate as runMigrations } from 'drizzle-orm/postgres-js/migrator'
import postgres from 'postgres'
import { OutledgerError } from './errors.ts'
import { codeOf } from './events.ts'
import type { Executor } from './sql/executor.ts'
import { type Condition, inspect, lockMigration, migrationCount } from './sql/inspect.ts'
import { anyExecutor } from './transaction.ts'

const migrationsFolder = fileURLToPath(new URL('../drizzle', import.meta.url))
const config = { migrationsFolder, migrationsSchema: 'outbox', migrationsTable: 'migration' }
const OLDEST_POSTGRES = 150_000

/**
 * Create or update the schema. Safe to run from every instance at start: they take turns.
 *
 * @returns how many migrations were applied now
 * @throws OutledgerError `foreign_schema`, `unsupported_database`, `database_unreachable`
 */
export async function migrate(databaseUrl: string): Promise<{ applied: number }> {
  // One connection: the lock is the session's. drizzle changes the client it is given, so it has this one to itself.
  const client = postgres(databaseUrl, { max: 1, onnotice: () => {}, connect_timeout: 10 })
  try {
    const db = anyExecutor(client)
    const condition = await inspect(db).catch(unreachable)
    refuseUnfit(condition)
    await lockMigration(db)
    const before = (await inspect(db)).ours ? await migrationCount(db) : 0
    await runMigrations(drizzle(client), config)
    return { applied: (await migrationCount(db)) - before }
  } finally {
    await client.end({ timeout: 1 })
  }
}

/** Check at start that the schema is there and not older than this code. */
export async function requireSchema(db: Executor): Promise<void> {
  const condition = await inspect(db).catch(unreachable)
  refuseUnfit(condition)
  if (condition.isolation !== 'read committed') {
    throw new OutledgerError(
      'unsupported_database',
      `the default isolation of role ${condition.role} is ${condition.isolation}, under which claims fail; run: ALTER ROLE "${condition.role}" SET default_transaction_isolation = 'read committed'`,
    )
  }
  const expected = readMigrationFiles(config).length
  const found = condition.ours ? await migrationCount(db) : 0
  if (found < expected) {
    throw new OutledgerError(
      'schema_missing',
      `the database has ${found} of ${expected} migrations of schema outbox; run "outledger migrate"`,
    )
  }
}

function refuseUnfit({ encoding, version, schema, ours }: Condition): void {
  if (encoding !== 'UTF8') {
    throw new OutledgerError(
      'unsupported_database',
      `the database has encoding ${encoding}; payloads are UTF-8: create one with ENCODING 'UTF8'`,
    )
  }
  if (version < OLDEST_POSTGRES) {
    throw new OutledgerError(
      'unsupported_database',
      `the server is PostgreSQL ${Math.floor(version / 10_000)}; 15 or later is needed`,
    )
  }
  if (schema && !ours) {
    throw new OutledgerError(
      'foreign_schema',
      'the database has a schema "outbox" that is not ours; rename it (ALTER SCHEMA outbox RENAME TO …) or use another database',
    )
  }
}

const REMEDIES: Readonly<Record<string, string>> = {
  '3D000': 'the database of the URL does not exist; create it',
  '28P01': 'user or password of the URL was refused',
  '28000': 'the user of the URL may not log in from here; check pg_hba.conf',
  '42501': 'the role of the URL lacks the rights; grant them, or use the owner of the schema',
  '25006': 'the database is read-only; connect to the primary',
  '53300': 'the server has no connection left; raise max_connections or use fewer pollers',
}

/** SQLSTATEs of a server that answers and works: not the connection is at fault. */
const ANSWERED = /^(?!08|57P)[0-9A-Z]{5}$/

/** Trouble of the database as one line that says what to do. */
export function databaseTrouble(error: unknown): OutledgerError {
  const code = codeOf(error)
  if (ANSWERED.test(code)) {
    const remedy = REMEDIES[code]
    return new OutledgerError('database_refused', remedy ? `${remedy} (${code})` : `failed with ${code}`, {
      cause: error,
    })
  }
  const message = `no connection to the database (${code}); check the URL and that the server is up`
  return new OutledgerError('database_unreachable', message, { cause: error })
}

function unreachable(error: unknown): never {
  throw error instanceof OutledgerError ? error : databaseTrouble(error)
}

// Does this code work with the schema it finds? Older pollers go on beside a newer schema of the same major.
import { fileURLToPath } from 'node:url'
import { readMigrationFiles } from 'drizzle-orm/migrator'
import { databaseTrouble } from './database-trouble.ts'
import { OutledgerError } from './errors.ts'
import type { Executor } from './sql/executor.ts'
import { type Applied, applied, type Condition, inspect } from './sql/inspect.ts'
import type { Migration } from './sql/migration.ts'
import { VERSION } from './version.ts'

/** Raised when a migration does more than expand, so that the code before it could not go on. */
const MAJOR = 1

const OLDEST_POSTGRES = 150_000

/** All migrations of this code, oldest first. */
export function migrations(): Migration[] {
  const migrationsFolder = fileURLToPath(new URL('../drizzle', import.meta.url))
  return readMigrationFiles({ migrationsFolder }).map(({ sql, hash, folderMillis }) => ({
    statements: sql,
    hash,
    made: folderMillis,
  }))
}

/**
 * Check at start that the schema is there, not older than this code, and of its major.
 *
 * @throws OutledgerError `schema_missing`, `schema_version`, `foreign_schema`, `unsupported_database`, `database_unreachable`, `database_refused`
 */
export async function requireSchema(db: Executor): Promise<void> {
  const expected = migrations().length
  const { condition, found } = await surveyed(db)
  if (condition.isolation !== 'read committed') {
    throw new OutledgerError(
      'unsupported_database',
      `the default isolation of role ${condition.role} is ${condition.isolation}, under which claims fail; run: ALTER ROLE "${condition.role}" SET default_transaction_isolation = 'read committed'`,
    )
  }
  if (found.count < expected) {
    throw new OutledgerError(
      'schema_missing',
      `the database has ${found.count} of ${expected} migrations of schema outbox; run "outledger migrate"`,
    )
  }
}

export interface Survey {
  readonly condition: Condition
  readonly found: Applied
}

/** What is there; refused when this code must not touch it. */
export async function surveyed(db: Executor): Promise<Survey> {
  try {
    const condition = await inspect(db)
    refuseUnfit(condition)
    const found = await applied(db, condition)
    refuseOtherMajor(found)
    return { condition, found }
  } catch (error) {
    throw databaseTrouble(error)
  }
}

function refuseOtherMajor({ major }: Applied): void {
  if (major === null || major === MAJOR) return
  const remedy =
    major > MAJOR
      ? `upgrade outledger here to a version for major ${major}`
      : 'stop every poller of that major, then upgrade the schema as CHANGELOG.md says'
  throw new OutledgerError(
    'schema_version',
    `schema outbox is of major ${major}, and outledger ${VERSION} works with major ${MAJOR}; ${remedy}`,
  )
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

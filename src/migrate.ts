// Bring the schema `outbox` to this version; several may start at once. Or print what that would take, for others to run.
import postgres from 'postgres'
import { databaseTrouble } from './database-trouble.ts'
import { migrations, type Survey, surveyed } from './schema-version.ts'
import type { Executor } from './sql/executor.ts'
import { applying, prepare, TRANSACTION, TURN, transactionText } from './sql/migration.ts'
import { anyExecutor } from './transaction.ts'
import { VERSION } from './version.ts'

/**
 * Create or update the schema, all of it or nothing. Safe to run from every instance at start: they take turns.
 *
 * @returns how many migrations were applied now
 * @throws OutledgerError `foreign_schema`, `schema_version`, `unsupported_database`, `database_unreachable`, or
 * `database_refused`, for one when a table stays locked by another session for five seconds
 */
export function migrate(databaseUrl: string): Promise<{ applied: number }> {
  return onOneConnection(databaseUrl, async (client) => {
    // Without waiting for anybody: what is unfit stays so.
    await surveyed(anyExecutor(client))
    const done = client.begin(TRANSACTION, async (tx) => {
      const db = anyExecutor(tx)
      await runAll(db, TURN)
      const survey = await surveyed(db)
      const missing = missingFrom(survey)
      if (survey.found.last === 0) await runAll(db, prepare({ schema: survey.condition.present }))
      await runAll(db, missing.flatMap(applying))
      return { applied: missing.length }
    })
    return done.catch((error: unknown) => {
      throw databaseTrouble(error)
    })
  })
}

/** The same as SQL text: what the database lacks, or, without one, everything. */
export async function migrationSql(databaseUrl?: string): Promise<string> {
  const survey =
    databaseUrl === undefined ? null : await onOneConnection(databaseUrl, (client) => surveyed(anyExecutor(client)))
  const last = survey?.found.last ?? 0
  const missing = missingFrom(survey)
  const title = `-- outledger ${VERSION}, schema outbox: `
  if (missing.length === 0) return `${title}up to date`
  const state = { last, schema: survey?.condition.present ?? false }
  return `${title}${missing.length} migrations in one transaction, all or nothing\n${transactionText(missing, state)}`
}

const missingFrom = (survey: Survey | null) => migrations().filter(({ made }) => made > (survey?.found.last ?? 0))

async function runAll(db: Executor, statements: readonly string[]): Promise<void> {
  for (const statement of statements) await db.run(statement, [])
}

async function onOneConnection<T>(databaseUrl: string, work: (client: postgres.Sql) => Promise<T>): Promise<T> {
  const client = postgres(databaseUrl, { max: 1, fetch_types: false, onnotice: () => {}, connect_timeout: 10 })
  try {
    return await work(client)
  } finally {
    await client.end({ timeout: 1 })
  }
}

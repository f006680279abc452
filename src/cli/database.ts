// One database connection for one verb.
import { requireSchema } from '../schema-version.ts'
import { connect, type Database } from '../sql/executor.ts'

/** Run `work` on a database that has our schema. */
export async function withDatabase<T>(url: string, work: (db: Database) => Promise<T>): Promise<T> {
  const db = connect(url, { max: 1, deadlineMs: 60_000 })
  try {
    await requireSchema(db)
    return await work(db)
  } finally {
    await db.close()
  }
}

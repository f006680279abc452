// How much of each table a statement has touched, by the counters of Postgres for the transaction it ran in.
import type { Executor } from '../../src/sql/executor.ts'
import type { TestDatabase } from './database.ts'
import { begin } from './session.ts'

/** Rows that scans of a table, or of an index, gave out before any filter, and pages looked at, each time counted. */
export interface Touched {
  readonly table: string
  readonly name: string
  readonly rows: number
  readonly pages: number
}

/** Runs `work` in a transaction that is undone afterwards. */
export async function touchedBy(db: TestDatabase, work: (db: Executor) => Promise<unknown>): Promise<Touched[]> {
  const session = await begin(db)
  await work(session)
  const touched = await session.run<Touched>(
    `select t.relname::text as table, c.relname::text as name,
            pg_stat_get_xact_tuples_returned(c.oid)::int as rows,
            pg_stat_get_xact_blocks_fetched(c.oid)::int as pages
     from pg_class t left join pg_index i on i.indrelid = t.oid join pg_class c on c.oid in (t.oid, i.indexrelid)
     where t.relnamespace = 'outbox'::regnamespace and t.relkind = 'r'
     group by t.oid, c.oid order by t.relname, c.relname`,
    [],
  )
  await session.rollback()
  return touched.filter(({ rows, pages }) => rows + pages > 0)
}

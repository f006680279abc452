// The clients an app may bring: how each is known at run time, whatever version it is, how its transaction is told from
// the client itself, and how it runs a statement. None of them is imported: the types say only what is used.
import { type SQLWrapper, sql } from 'drizzle-orm'
import { OutledgerError } from './errors.ts'
import type { Value } from './sql/executor.ts'

/** drizzle (postgres-js, node-postgres and their like): `db`, or the `tx` of `db.transaction`. */
interface DrizzleHandle {
  execute(query: SQLWrapper): PromiseLike<unknown>
}

/** postgres.js: `sql`, or the `tx` of `sql.begin`. */
interface PostgresHandle {
  // biome-ignore lint/suspicious/noExplicitAny: postgres.js types its parameters by its own client's type map
  unsafe(text: string, values?: any[]): PromiseLike<unknown>
}

/** node-postgres: a pool, or a client after its `BEGIN`. */
interface PgHandle {
  query(text: string, values: Value[]): PromiseLike<{ readonly rows: object[] }>
}

/** kysely: `db`, or the `trx` of `db.transaction().execute`. */
interface KyselyHandle {
  readonly isTransaction: boolean
  // biome-ignore lint/suspicious/noExplicitAny: kysely's CompiledQuery holds its own tree of nodes
  executeQuery(query: any): PromiseLike<{ readonly rows: object[] }>
}

/** Prisma: the client, or the `tx` of an interactive `prisma.$transaction`. */
interface PrismaHandle {
  $queryRawUnsafe(text: string, ...values: unknown[]): PromiseLike<unknown>
}

/** Everything else: run one statement on the connection of the transaction; `$n` stand for the values; the rows come back. */
interface RunHandle {
  run(text: string, values: Value[]): PromiseLike<readonly object[]>
}

export type Handle = DrizzleHandle | PostgresHandle | PgHandle | KyselyHandle | PrismaHandle | RunHandle

interface Client<H> {
  /** What its transaction is called where the app writes it. */
  readonly transaction: string
  readonly is: (handle: object) => boolean
  /** Can it be seen that no transaction is open on it? Where not, the server says so: see sql/in-transaction.ts. */
  readonly isRoot: (handle: H) => boolean
  run(handle: H, text: string, values: Value[]): PromiseLike<readonly object[]>
}

const has = (handle: object, method: string): boolean =>
  typeof (handle as Record<string, unknown>)[method] === 'function'

const client = <H>(of: Client<H>): Client<Handle> => of as unknown as Client<Handle>

const isRow = (row: unknown): boolean => typeof row === 'object' && row !== null && !Array.isArray(row)

const CLIENTS: readonly Client<Handle>[] = [
  // First, and by asking for properties only: it is a proxy that throws when asked which it has.
  client<PrismaHandle>({
    transaction: 'the tx of prisma.$transaction(async (tx) => …)',
    is: (handle) => has(handle, '$queryRawUnsafe'),
    isRoot: (handle) => has(handle, '$connect'),
    run: async (handle, text, values) => (await handle.$queryRawUnsafe(text, ...values)) as object[],
  }),
  client<KyselyHandle>({
    transaction: 'the trx of db.transaction().execute',
    is: (handle) => has(handle, 'executeQuery') && 'isTransaction' in handle,
    isRoot: ({ isTransaction }) => !isTransaction,
    // The form of kysely's own CompiledQuery.raw. Its plugins may use the queryId as the key of a WeakMap.
    run: async (handle, text, values) =>
      (
        await handle.executeQuery({
          sql: text,
          parameters: values,
          query: { kind: 'RawNode', sqlFragments: [text], parameters: [] },
          queryId: { queryId: 'outledger' },
        })
      ).rows,
  }),
  client<DrizzleHandle>({
    transaction: 'the tx of db.transaction',
    is: (handle) => has(handle, 'execute') && has(handle, 'transaction'),
    isRoot: (handle) => !has(handle, 'rollback'),
    run: runDrizzle,
  }),
  client<PostgresHandle>({
    transaction: 'the tx of sql.begin',
    is: (handle) => has(handle, 'unsafe'),
    isRoot: (handle) => !has(handle, 'savepoint'),
    run: async (handle, text, values) => [...((await handle.unsafe(text, values)) as object[])],
  }),
  client<PgHandle & { getTransactionStatus?(): string | null }>({
    transaction: 'a client of the pool, after its BEGIN',
    is: (handle) => has(handle, 'query') && has(handle, 'escapeLiteral'),
    // Absent before pg 8.17; E, a transaction that has failed, gets its answer from the server.
    isRoot: (handle) => has(handle, 'getTransactionStatus') && !/[TE]/.test(handle.getTransactionStatus?.() ?? ''),
    run: async (handle, text, values) => (await handle.query(text, values)).rows,
  }),
  client<PgHandle>({
    transaction: 'a client of the pool, after its BEGIN',
    is: (handle) => has(handle, 'query') && typeof (handle as { totalCount?: unknown }).totalCount === 'number',
    isRoot: () => true,
    run: async (handle, text, values) => (await handle.query(text, values)).rows,
  }),
  client<RunHandle>({
    transaction: 'a run that uses the connection of the transaction',
    is: (handle) => has(handle, 'run'),
    isRoot: () => false,
    run: async (handle, text, values) => {
      const rows: unknown = await handle.run(text, values)
      // Some drivers give the rows and something beside them, in an array too.
      if (!Array.isArray(rows) || (rows.length > 0 && !isRow(rows[0])))
        throw new OutledgerError(
          'unknown_client',
          'the run that was passed must resolve to the rows, an array of objects',
        )
      return rows
    },
  }),
]

/** The client that a handle is of. A postgres.js client is a function with properties. */
export const clientOf = (handle: unknown): Client<Handle> | undefined =>
  (typeof handle === 'object' || typeof handle === 'function') && handle !== null
    ? CLIENTS.find(({ is }) => is(handle))
    : undefined

async function runDrizzle(handle: DrizzleHandle, text: string, values: readonly Value[]): Promise<object[]> {
  const chunks = text
    .split(/\$(\d+)/)
    .map((part, i) => (i % 2 === 0 ? sql.raw(part) : sql.param(values[Number(part) - 1] ?? null)))
  const result = (await handle.execute(sql.join(chunks))) as object[] | { readonly rows: object[] }
  return 'rows' in result ? result.rows : [...result]
}

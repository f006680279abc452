// Any supported client's handle becomes one `run(text, values)`; what is no transaction is refused.
import { type SQLWrapper, sql } from 'drizzle-orm'
import { OutledgerError } from './errors.ts'
import type { Executor, Row, Value } from './sql/executor.ts'

/** A drizzle handle (postgres-js driver): `db`, or the `tx` of `db.transaction`. */
interface DrizzleHandle {
  execute(query: SQLWrapper): PromiseLike<unknown>
}

/** A postgres.js handle: `sql`, or the `tx` of `sql.begin`. */
interface PostgresHandle {
  // biome-ignore lint/suspicious/noExplicitAny: postgres.js types its parameters by its own client's type map
  unsafe(text: string, values?: any[]): PromiseLike<unknown>
}

export type Handle = DrizzleHandle | PostgresHandle | Executor

const has = (handle: object, method: string): boolean =>
  typeof (handle as Record<string, unknown>)[method] === 'function'

// Each client's transaction has a method that its root has not: seen at run time, whatever version the app brings.
const isDrizzle = (handle: object): handle is DrizzleHandle => has(handle, 'execute') && has(handle, 'transaction')
const isExecutor = (handle: object): handle is Executor => has(handle, 'run') && !has(handle, 'unsafe')
const isPostgres = (handle: object): handle is PostgresHandle => has(handle, 'unsafe')

/** An executor on a transaction. @throws OutledgerError `not_a_transaction` for a root client, `unknown_client` for anything else */
export function transactionExecutor(handle: Handle): Executor {
  const executor = anyExecutor(handle)
  if (!(isDrizzle(handle) ? has(handle, 'rollback') : has(handle, 'savepoint'))) {
    throw new OutledgerError(
      'not_a_transaction',
      'enqueue needs the transaction of the business write (the tx of db.transaction or sql.begin), and was given the client itself; call enqueueStandalone if there is no business write',
    )
  }
  return executor
}

/** An executor on a root client or a transaction. */
export function anyExecutor(handle: Handle): Executor {
  // A postgres.js client is a function with properties.
  const isClient = (typeof handle === 'object' || typeof handle === 'function') && handle !== null
  if (isClient && isDrizzle(handle)) return { run: (text, values) => runDrizzle(handle, text, values) as never }
  if (isClient && isExecutor(handle)) return handle
  if (isClient && isPostgres(handle)) return { run: (text, values) => handle.unsafe(text, [...values]) as never }
  throw new OutledgerError('unknown_client', 'this is no handle of drizzle (postgres-js) or postgres.js')
}

async function runDrizzle(handle: DrizzleHandle, text: string, values: readonly Value[]): Promise<Row[]> {
  const chunks = text
    .split(/\$(\d+)/)
    .map((part, i) => (i % 2 === 0 ? sql.raw(part) : sql.param(values[Number(part) - 1] ?? null)))
  return [...((await handle.execute(sql.join(chunks))) as Row[])]
}

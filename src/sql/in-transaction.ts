// Is a transaction open where this statement runs? The server knows, even when the client's handle has outlived its own.
import type { Executor } from './executor.ts'

/**
 * Outside a transaction nothing has been written before in it, and no setting of its own is left. Evaluated once, before
 * the function that it guards: a statement of its own would cost a round trip with every enqueue.
 */
export const IN_TRANSACTION = `pg_current_xact_id_if_assigned() is not null or current_setting('outledger.transaction', true) = 'open'`

const mark = `select set_config('outledger.transaction', 'open', true)`

/**
 * Runs a write guarded by IN_TRANSACTION. It returns null where the guard held it back: then the transaction is marked,
 * for one that has written nothing yet, and the write tried again. Null: there is no transaction.
 */
export async function inTransaction<T>(db: Executor, write: () => Promise<T | null>): Promise<T | null> {
  const written = await write()
  if (written !== null) return written
  await db.run(mark, [])
  return write()
}

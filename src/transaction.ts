// Any supported client's handle becomes one `run(text, values)`; what is no transaction is refused.
import { clientOf, type Handle } from './clients.ts'
import { OutledgerError } from './errors.ts'
import type { Executor } from './sql/executor.ts'

export type { Handle } from './clients.ts'

/** An executor on a transaction. @throws OutledgerError `not_a_transaction` for a root client, `unknown_client` for anything else */
export function transactionExecutor(handle: Handle): Executor {
  const executor = anyExecutor(handle)
  if (clientOf(handle)?.isRoot(handle)) throw notATransaction(handle, 'and was given the client itself')
  return executor
}

/** An executor on a root client or a transaction. */
export function anyExecutor(handle: Handle): Executor {
  const client = clientOf(handle)
  if (client === undefined) {
    throw new OutledgerError(
      'unknown_client',
      'this is no handle of drizzle, postgres.js, node-postgres, kysely or Prisma; for any other client pass { run(text, values) } that resolves to the rows',
    )
  }
  return { run: (text, values) => client.run(handle, text, [...values]) as never }
}

/** `what` goes on in the sentence that says what is needed. */
export const notATransaction = (handle: Handle, what: string) =>
  new OutledgerError(
    'not_a_transaction',
    `enqueue needs the transaction of the business write, ${clientOf(handle)?.transaction}, ${what}; call enqueueStandalone if there is no business write`,
  )

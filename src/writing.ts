// One message or many through the SQL functions, on whatever runs a statement; what becomes of each is a value here.
import { MESSAGES_LIMIT, payloadsProblem } from './core/message.ts'
import { OutledgerError } from './errors.ts'
import { checked, type Message } from './message.ts'
import { refused } from './refusals.ts'
import { type Enqueued, type EnqueueRow, enqueue, enqueueGuarded } from './sql/enqueue.ts'
import { enqueueMany, enqueueManyGuarded } from './sql/enqueue-many.ts'
import type { Executor } from './sql/executor.ts'
import { inTransaction } from './sql/in-transaction.ts'
import { anyExecutor, type Handle, notATransaction, transactionExecutor } from './transaction.ts'

/** In the transaction of this handle, or not at all. A conflict is a value. */
export async function writeOneIn(tx: Handle, message: Message): Promise<Enqueued> {
  const db = transactionExecutor(tx)
  const row = checked(message)
  return within(tx, db, () => enqueueGuarded(db, row))
}

/** On any handle. A conflict is a value. */
export async function writeOne(handle: Handle, message: Message): Promise<Enqueued> {
  const db = anyExecutor(handle)
  return enqueue(db, checked(message)).catch(refused)
}

/** In the transaction of this handle, or not at all. Those with a conflict are not written, all others are. */
export async function writeManyIn(tx: Handle, messages: readonly Message[]): Promise<readonly Enqueued[]> {
  const db = transactionExecutor(tx)
  const rows = checkedRows(messages)
  return rows.length === 0 ? [] : within(tx, db, () => enqueueManyGuarded(db, rows))
}

/** What became of each message, in the order given. Those with a conflict are not written, all others are. */
export async function writeMany(
  db: Executor,
  messages: readonly Message[],
  discoveredBy = 'app',
): Promise<readonly Enqueued[]> {
  const rows = checkedRows(messages)
  return rows.length === 0 ? [] : enqueueMany(db, rows, { discoveredBy }).catch(refused)
}

async function within<T>(tx: Handle, db: Executor, write: () => Promise<T | null>): Promise<T> {
  const written = await inTransaction(db, write).catch((error) => refused(error, tx))
  if (written === null) throw notATransaction(tx, 'and none is open here: it has ended, or never began')
  return written
}

function checkedRows(messages: readonly Message[]): EnqueueRow[] {
  if (!Array.isArray(messages)) throw new OutledgerError('invalid_message', 'messages is not an array')
  if (messages.length > MESSAGES_LIMIT) {
    throw new OutledgerError(
      'invalid_message',
      `messages are ${messages.length}; the limit is ${MESSAGES_LIMIT} a call: call several times in the same transaction`,
    )
  }
  // Holes as well: map would pass them over.
  const rows = Array.from(messages, (message, i) => checked(message, `messages[${i}]`))
  const problem = payloadsProblem(rows.map(({ payload }) => payload))
  if (problem !== null) throw new OutledgerError('invalid_message', `${problem.field} ${problem.problem}`)
  return rows
}

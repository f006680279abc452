// One message or many through the SQL functions, on whatever runs a statement; what becomes of each is a value here.
import { MESSAGES_LIMIT, payloadsProblem } from './core/message.ts'
import { OutledgerError } from './errors.ts'
import { checked, type Message } from './message.ts'
import { refused } from './refusals.ts'
import { type Enqueued, enqueue } from './sql/enqueue.ts'
import { enqueueMany } from './sql/enqueue-many.ts'
import type { Executor } from './sql/executor.ts'

/** What became of a message: a conflict is a value. */
export async function writeOne(db: Executor, message: Message): Promise<Enqueued> {
  const row = checked(message)
  return enqueue(db, row).catch(refused)
}

/** What became of each message, in the order given. Those with a conflict are not written, all others are. */
export async function writeMany(
  db: Executor,
  messages: readonly Message[],
  discoveredBy = 'app',
): Promise<readonly Enqueued[]> {
  if (!Array.isArray(messages)) throw new OutledgerError('invalid_message', 'messages is not an array')
  if (messages.length > MESSAGES_LIMIT) {
    throw new OutledgerError(
      'invalid_message',
      `messages are ${messages.length}; the limit is ${MESSAGES_LIMIT} a call: call several times in the same transaction`,
    )
  }
  const rows = messages.map((message, i) => checked(message, `messages[${i}]`))
  const problem = payloadsProblem(rows.map(({ payload }) => payload))
  if (problem !== null) throw new OutledgerError('invalid_message', `${problem.field} ${problem.problem}`)
  return rows.length === 0 ? [] : enqueueMany(db, rows, { discoveredBy }).catch(refused)
}

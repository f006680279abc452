// Enqueue: what the app calls in its own transaction.
import { OutledgerError } from './errors.ts'
import type { Message } from './message.ts'
import type { Enqueued } from './sql/enqueue.ts'
import type { Handle } from './transaction.ts'
import { writeManyIn, writeOne, writeOneIn } from './writing.ts'

export { get, list, status } from './look.ts'
export type { Message } from './message.ts'

/** `inserted: false` with an id: the same event again, written before. `purged`: written, ended and purged before. */
export type EnqueueResult =
  | { readonly inserted: true; readonly id: string }
  | { readonly inserted: false; readonly id: string }
  | { readonly inserted: false; readonly id: null; readonly purged: true }

/**
 * Write a delivery in the caller's transaction: it is sent if and only if that transaction commits.
 *
 * @throws OutledgerError `not_a_transaction`, `transaction_aborted`, `invalid_message`, `unknown_endpoint`, or `key_conflict` when the key
 * exists with another endpoint, type or payload. A conflict is found without an error in the database, so the
 * transaction is still usable when it is caught.
 */
export async function enqueue(tx: Handle, message: Message): Promise<EnqueueResult> {
  return resultOf(message, await writeOneIn(tx, message))
}

/**
 * Write up to 1,000 deliveries with up to 16 MiB of payloads in the caller's transaction, in one statement a table.
 * Results come back in the order given; deliveries of one ordering key go out in that order.
 *
 * @throws OutledgerError as `enqueue` does, and names the message. One that is invalid fails the whole call. With a
 * `key_conflict` all messages without one are written: the caller that catches it and commits, sends those.
 */
export async function enqueueMany(tx: Handle, messages: readonly Message[]): Promise<EnqueueResult[]> {
  const written = await writeManyIn(tx, messages)
  const conflicts = written.flatMap(({ conflict }, i) =>
    conflict === null ? [] : [`messages[${i}]: key ${messages[i]?.key} exists with another ${conflict}`],
  )
  if (conflicts.length > 0) {
    const more = conflicts.length > SHOWN ? `; and ${conflicts.length - SHOWN} more` : ''
    throw keyConflict(
      `${conflicts.slice(0, SHOWN).join('; ')}${more}`,
      `${conflicts.length} of ${written.length} events were not written`,
      messages[written.findIndex(({ conflict }) => conflict !== null)] as Message,
    )
  }
  return written.map((row, i) => resultOf(messages[i] as Message, row))
}

/** How many conflicts one error names. */
const SHOWN = 5

/** Write a delivery in a transaction of its own, for events that no business write stands behind. Takes the client itself. */
export async function enqueueStandalone(db: Handle, message: Message): Promise<EnqueueResult> {
  return resultOf(message, await writeOne(db, message))
}

function resultOf(message: Message, { id, inserted, conflict }: Enqueued): EnqueueResult {
  if (conflict !== null)
    throw keyConflict(`key ${message.key} exists with another ${conflict}`, 'this event was not written', message)
  if (id === null) return { inserted: false, id, purged: true }
  return inserted ? { inserted, id } : { inserted, id }
}

const keyConflict = (what: string, outcome: string, { key }: Message) =>
  new OutledgerError(
    'key_conflict',
    `${what}; ${outcome}. One event for one endpoint has one key: use another, such as ${key.slice(0, 200)}:2`,
  )

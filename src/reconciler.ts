// Business rows − ledger = gaps: what the app should have enqueued and did not is enqueued once, under its own key.
import { createHash } from 'node:crypto'
import { PAYLOADS_LIMIT_BYTES } from './core/message.ts'
import { OutledgerError } from './errors.ts'
import { codeOf } from './events.ts'
import { definitionOf, pagesOf, type Reconciliation } from './expected.ts'
import { checked, type Message } from './message.ts'
import { refused } from './refusals.ts'
import type { EnqueueRow } from './sql/enqueue.ts'
import type { Executor } from './sql/executor.ts'
import { beginRun, gaps, noteRun } from './sql/reconcile.ts'
import { anyExecutor, type Handle } from './transaction.ts'
import { writeMany } from './writing.ts'

/** Mismatches that are named; all are counted. */
const NAMED = 100

export interface ReconciliationRun {
  /** Number of the row in `outbox.reconciliation`. */
  readonly id: string
  /** Rows looked at. */
  readonly checked: number
  /** Of these, keys without a delivery; one that was purged is not missing. */
  readonly missing: number
  /** Of these, enqueued by this run; fewer when another run, or the app itself, was faster. */
  readonly enqueued: number
  /** Keys whose delivery has another endpoint, type or payload: reported, and left as it is. */
  readonly mismatched: number
  /** The first hundred of them. */
  readonly mismatches: readonly { readonly key: string; readonly what: 'endpoint' | 'type' | 'payload' }[]
}

/**
 * One run: the keys that should exist and have no delivery are enqueued once under those same keys, and the run is on
 * record in `outbox.reconciliation`. Safe at any time, any number of times at once: a key is enqueued once. Takes the
 * client itself: inside a transaction, everything would wait for its commit, the record of a failure included.
 *
 * @throws OutledgerError `unknown_reconciliation`; and what the query or `toMessage` threw, once its code is on record
 */
export async function reconcileOnce<R>(db: Handle, which: string | Reconciliation<R>): Promise<ReconciliationRun> {
  const definition = definitionOf(which)
  const executor = anyExecutor(db)
  const ledger: Executor = { run: (text, values) => executor.run<never>(text, values).catch(refused) }
  const run = {
    id: await beginRun(ledger, definition.name),
    ...{ checked: 0, missing: 0, enqueued: 0, mismatched: 0 },
    mismatches: [] as { key: string; what: 'endpoint' | 'type' | 'payload' }[],
  }
  const mismatch = (key: string, what: 'endpoint' | 'type' | 'payload') => {
    run.mismatched++
    if (run.mismatches.length < NAMED) run.mismatches.push({ key, what })
  }
  try {
    // Read first, look afterwards: who sees a business row sees the delivery that was committed with it.
    for await (const rows of pagesOf(db, executor, definition)) {
      const messages = rows.map((row) => definition.toMessage(row))
      const wanted = messages.map((message, i) => wantedOf(checked(settled(message), `row ${run.checked + i + 1}`)))
      const missing: { message: Message; bytes: number }[] = []
      for (const { number, gap } of await gaps(ledger, wanted)) {
        const { key, bytes } = wanted[number - 1] as (typeof wanted)[number]
        if (gap === 'missing') missing.push({ message: messages[number - 1] as Message, bytes })
        else mismatch(key, gap)
      }
      run.checked += rows.length
      run.missing += missing.length
      for (const batch of batchesOf(missing)) {
        const written = await writeMany(executor, batch, definition.name)
        for (const [i, { inserted, conflict }] of written.entries()) {
          if (inserted) run.enqueued++
          else if (conflict !== null) mismatch((batch[i] as Message).key, conflict)
        }
      }
      await noteRun(ledger, run)
    }
    await noteRun(ledger, run, { finished: true })
    return run
  } catch (error) {
    // Where even this cannot be written, what went wrong first is what the caller needs.
    await noteRun(ledger, run, { finished: true, error: codeOf(error).slice(0, 100) }).catch(() => {})
    throw error
  }
}

function settled(message: Message): Message {
  if (typeof (message as { then?: unknown } | null)?.then !== 'function') return message
  throw new OutledgerError('invalid_message', 'toMessage returned a promise; it must return the message itself')
}

function wantedOf({ key, endpoint, type, payload, payloadRef }: EnqueueRow) {
  const payloadSha256 = payload === null ? null : createHash('sha256').update(payload).digest('hex')
  return { key, endpoint, type, payloadRef, payloadSha256, bytes: Buffer.byteLength(payload ?? '') }
}

/** Few enough bytes for one call each. */
function batchesOf(messages: readonly { message: Message; bytes: number }[]): Message[][] {
  const batches: Message[][] = []
  let sum = Number.POSITIVE_INFINITY
  for (const { message, bytes } of messages) {
    sum += bytes
    if (sum > PAYLOADS_LIMIT_BYTES) {
      batches.push([])
      sum = bytes
    }
    batches.at(-1)?.push(message)
  }
  return batches
}

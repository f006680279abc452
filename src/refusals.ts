// What the database or the client refuses, in our words; whatever a client has wrapped around it, no payload comes out.
import { OutledgerError } from './errors.ts'
import { type Handle, notATransaction } from './transaction.ts'

/** What the SQL functions raise begins so; the first word is the field. Prisma quotes it inside a message of its own. */
const OURS = /outledger: (?:message (\d+): )?((\w+) [^\n`]*)/

const MISSING = new Set(['42883', '3F000', '42P01'])
const ABORTED = '25P02'

/** Of Prisma, kysely and postgres.js, whose handles know that their transaction is over. */
const ENDED = /^UNSAFE_TRANSACTION: |^Transaction is already (?:committed|rolled back)$|Transaction already closed/

/** As far as a client tells it: pg, postgres.js and kysely on the error itself, drizzle on its cause, Prisma in its meta. */
interface Told {
  readonly code?: string
  readonly message?: string
  readonly cause?: unknown
  readonly meta?: {
    readonly code?: string
    readonly driverAdapterError?: { readonly cause?: { readonly originalCode?: string } }
  }
}

/** The parameters of the SQL functions are the fields of a message, spelled as SQL spells. */
const camel = (field: string): string => field.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())

const sqlStateOf = ({ code, meta }: Told): string | undefined =>
  meta?.driverAdapterError?.cause?.originalCode ?? meta?.code ?? code

/** Rethrow what a call of outbox.enqueue or outbox.enqueue_many threw. */
export function refused(error: unknown, tx?: Handle): never {
  // drizzle's own error has the payload in its message.
  const cause = ((error as Told | null | undefined)?.cause ?? error ?? new Error('the client gave no reason')) as Told
  const [state, message = ''] = [sqlStateOf(cause), cause.message]
  const [, number, what = '', field] = (state === '22023' && OURS.exec(message)) || []
  if (field !== undefined) {
    throw new OutledgerError(
      field === 'endpoint' ? 'unknown_endpoint' : 'invalid_message',
      `${number === undefined ? '' : `messages[${Number(number) - 1}]: `}${camel(field)}${what.slice(field.length)}`,
    )
  }
  if (state === ABORTED) {
    throw new OutledgerError(
      'transaction_aborted',
      'an earlier statement of this transaction has failed, so nothing more can be written in it: roll it back, or back to a savepoint',
    )
  }
  if (tx !== undefined && ENDED.test(message)) throw notATransaction(tx, 'and this one has ended')
  if (MISSING.has(state ?? ''))
    throw new OutledgerError('schema_missing', 'the outbox schema is missing here, or older; run "outledger migrate"')
  throw cause
}

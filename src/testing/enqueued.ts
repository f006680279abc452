// What a transaction has enqueued, seen before it is committed or rolled back.
import { OutledgerError } from '../errors.ts'
import { completeOptions, type OptionTable } from '../options.ts'
import { type EnqueuedRow, enqueued as enqueuedRows } from '../sql/enqueued.ts'
import { anyExecutor, type Handle, transactionExecutor } from '../transaction.ts'

export interface Enqueued extends EnqueuedRow {
  /** The payload, parsed; undefined where the app keeps it and gave a `payloadRef`. */
  readonly payload: unknown
}

const FILTER = {
  type: { type: 'string', default: null, doc: 'Of this type' },
  endpoint: { type: 'string', default: null, doc: 'For this endpoint' },
  key: { type: 'string', default: null, doc: 'With this key' },
} as const satisfies OptionTable

/**
 * What this transaction has enqueued, in order; of a client that is in no transaction, what is in the database. Works in a
 * transaction that is rolled back afterwards. Reads `outbox.delivery`, since no view shows payloads: the role needs SELECT
 * on it, or to be its owner.
 *
 * @throws OutledgerError `invalid_option` for a filter that does not exist
 */
export async function enqueued(
  db: Handle,
  filter: { readonly type?: string; readonly endpoint?: string; readonly key?: string } = {},
): Promise<Enqueued[]> {
  const given = completeOptions(FILTER, filter)
  const rows = await enqueuedRows(anyExecutor(db), { ...given, mine: isTransaction(db) })
  return rows.map((row) => ({ ...row, payload: row.payloadText === null ? undefined : JSON.parse(row.payloadText) }))
}

function isTransaction(db: Handle): boolean {
  try {
    transactionExecutor(db)
    return true
  } catch (error) {
    if (error instanceof OutledgerError && error.code === 'not_a_transaction') return false
    throw error
  }
}

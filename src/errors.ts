// Everything that can be wrong, once: a code, what it means, and what to do about it.

/** Codes of `OutledgerError`, with the meaning and the remedy. */
export const ERRORS = {
  invalid_option: [
    'An option has an unknown name, a wrong type or a value out of range',
    'Correct the option that the message names',
  ],
  invalid_message: [
    'A field of a message given to enqueue is malformed or too long',
    'Correct the field that the message names',
  ],
  invalid_endpoint: [
    'A setting of an endpoint is malformed or contradicts another',
    'Correct the setting that the message names',
  ],
  endpoint_in_use: [
    'An endpoint with open deliveries is to be removed',
    'Let them end first; those that are blocked, and what is parked behind them, wait for a person',
  ],
  endpoint_unreviewed: [
    'A changed host, region or processor of the endpoint waits for a review',
    'Look at the change, then "outledger endpoint review"',
  ],
  endpoint_changed: [
    'The endpoint has changed since the version that was looked at',
    'Look again: "outledger endpoint show"',
  ],
  unknown_endpoint: ['The endpoint does not exist or was removed', 'Create it with "outledger endpoint put"'],
  unknown_delivery: [
    'No delivery has this key; if it was purged and its tombstone is still there, the message says when',
    'Check the key',
  ],
  key_conflict: [
    'The key exists with another endpoint, type or payload: this event would be lost',
    'Give each event for each endpoint a key of its own',
  ],
  not_a_transaction: [
    'enqueue was given a client that is not inside a transaction, or whose transaction has ended',
    'Pass the transaction handle and await the call inside it, or call enqueueStandalone',
  ],
  transaction_aborted: [
    'An earlier statement of the transaction has failed: Postgres takes no more in it',
    'Roll it back, or back to a savepoint',
  ],
  unknown_client: [
    'The object passed is no database client that is supported',
    'Pass a handle of drizzle, postgres.js, node-postgres, kysely or Prisma, or { run(text, values) }',
  ],
  secret_unresolvable: ['A secret reference cannot be resolved here', 'Set what the message names'],
  schema_missing: ['The database has no outbox schema, or an older one', 'Run "outledger migrate"'],
  schema_version: [
    'The schema outbox is of another major than this version of outledger',
    'Upgrade the side that the message names',
  ],
  foreign_schema: ['The database has a schema "outbox" that is not ours', 'Rename it, or use another database'],
  unsupported_database: [
    'The database has the wrong encoding, version or default isolation',
    'Run what the message says',
  ],
  invalid_reconciliation: [
    'A definition of a reconciliation is malformed, is the second of its name, or pages by a column that cannot be paged by',
    'Correct what the message names',
  ],
  unknown_reconciliation: [
    'No reconciliation of this name is defined in this process',
    'Import the file that calls defineReconciliation before it is asked for',
  ],
  drain_unfinished: [
    'drain, in a test, could not go on until nothing was due',
    'Do what the message says: stop the other poller, or raise the limit',
  ],
  database_unreachable: ['No connection to the database', 'Check the URL, and that the server is up'],
  database_refused: [
    'The database answers but does not let this role or statement through',
    'Do what the message says',
  ],
  database_timeout: [
    'The database did not answer in time; the connection was replaced',
    'Check the network between here and the server',
  ],
} as const

export type ErrorCode = keyof typeof ERRORS

/** What is wrong (what is expected comes back as a value). The message names the value, the limit and the remedy. */
export class OutledgerError extends Error {
  override readonly name = 'OutledgerError'
  readonly code: ErrorCode

  constructor(code: ErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}

// Every option stands here once: type, default, range and what it means. The command line comes from it.
import { didYouMean, type OptionSpec, optionProblem } from './core/option.ts'
import { OutledgerError } from './errors.ts'

export type OptionTable = Readonly<Record<string, OptionSpec>>

const MINUTE = 60_000
const DAY = 86_400_000

/** Options of `createPoller` and `outledger work`. */
export const POLLER_OPTIONS = {
  databaseUrl: {
    type: 'string',
    doc: 'Connection URL of the Postgres that holds the outbox (DATABASE_URL on the command line)',
  },
  name: {
    type: 'string',
    default: null,
    doc: 'Name of this poller in leases, attempts and logs; default host-pid-random. A label, never a proof',
  },
  slots: {
    type: 'integer',
    default: 64,
    min: 1,
    max: 1_000,
    doc: 'Requests in flight at once; also bounds how many payloads are in memory',
  },
  leaseMs: {
    type: 'integer',
    default: 30_000,
    min: 200,
    max: 60 * MINUTE,
    doc: 'Lease of a claimed delivery; at least timeoutMs + settleBudgetMs + 100',
  },
  timeoutMs: {
    type: 'integer',
    default: 20_000,
    min: 50,
    max: 30 * MINUTE,
    doc: 'Deadline of one request, connect to last byte, where the endpoint has none of its own',
  },
  settleBudgetMs: {
    type: 'integer',
    default: 5_000,
    min: 50,
    max: 5 * MINUTE,
    doc: 'Part of the lease kept free for writing the outcome; with less left than timeout and this, a delivery is given back unsent',
  },
  graceMs: {
    type: 'integer',
    default: 25_000,
    min: 0,
    max: 60 * MINUTE,
    doc: 'On stop, how long requests in flight may take to finish',
  },
  pollIntervalMs: {
    type: 'integer',
    default: 1_000,
    min: 10,
    max: MINUTE,
    doc: 'Longest pause between two looks at the queue',
  },
  heartbeatMs: {
    type: 'integer',
    default: 5_000,
    min: 50,
    max: 5 * MINUTE,
    doc: 'Interval of the heartbeat; three missed ones hand the lanes to the others',
  },
  sweepIntervalMs: { type: 'integer', default: 5_000, min: 50, max: 60 * MINUTE, doc: 'Interval of the sweep' },
  purgeIntervalMs: { type: 'integer', default: MINUTE, min: 50, max: DAY, doc: 'Interval of the purge' },
  tombstoneDays: {
    type: 'integer',
    default: 365,
    min: 1,
    max: 36_500,
    doc: 'How long a purged key still deduplicates',
  },
  databaseDeadlineMs: {
    type: 'integer',
    default: 10_000,
    min: 100,
    max: 10 * MINUTE,
    doc: 'Longest wait for the answer to one statement; then the connection is replaced',
  },
  connections: { type: 'integer', default: 4, min: 2, max: 100, doc: 'Database connections of one poller' },
} as const satisfies OptionTable

/** Settings of an endpoint, for `putEndpoint` and `outledger endpoint put`. */
export const ENDPOINT_OPTIONS = {
  name: { type: 'string', doc: 'Name that enqueue uses: 1 to 200 of A-Z a-z 0-9 . _ : -' },
  url: { type: 'string', doc: 'Where to POST; https, unless allowInsecure' },
  secret: {
    type: 'string',
    doc: 'Reference to the signing secret: env:NAME, file:/path, or what resolveSecret understands',
  },
  class: {
    type: 'string',
    default: 'default',
    doc: 'Kind of destination, such as payment-ledger or clinic; stands in logs and metrics instead of names',
  },
  authorization: {
    type: 'string',
    default: null,
    doc: 'Reference to the value of an authorization header, for receivers that want one',
  },
  headers: { type: 'string', default: null, doc: 'JSON object of further headers; may not replace ours' },
  timeoutMs: {
    type: 'integer',
    default: null,
    min: 50,
    max: 30 * MINUTE,
    doc: "Deadline of one request; null: the poller's timeoutMs",
  },
  retryDelayMs: {
    type: 'integer',
    default: 300_000,
    min: 0,
    max: DAY,
    doc: 'Pause after a failed attempt, plus up to 10 %',
  },
  backoffFactor: {
    type: 'number',
    default: 1,
    min: 1,
    max: 10,
    doc: 'Each further pause is so many times the one before',
  },
  maxDelayMs: { type: 'integer', default: DAY, min: 0, max: 7 * DAY, doc: 'Longest pause that backoff grows to' },
  horizonMs: {
    type: 'integer',
    default: 3 * DAY,
    min: 0,
    max: 365 * DAY,
    doc: 'An attempt that fails later than this after the first ends the delivery: dead, exhausted',
  },
  maxAttempts: {
    type: 'integer',
    default: null,
    min: 1,
    max: 100_000,
    doc: 'Attempts before the delivery ends: dead, exhausted; null: only the horizon counts',
  },
  keyWindowMs: {
    type: 'integer',
    default: 30 * DAY,
    min: 0,
    max: 3_650 * DAY,
    doc: 'How long the receiver remembers a key; nothing that may have been applied is sent again later',
  },
  concurrency: {
    type: 'integer',
    default: 64,
    min: 1,
    max: 10_000,
    doc: 'Requests in flight to this endpoint, all pollers together',
  },
  partitions: {
    type: 'integer',
    default: 8,
    min: 1,
    max: 1_024,
    doc: 'Lanes of this endpoint, the unit that pollers share; at most concurrency',
  },
  onDead: {
    type: 'string',
    default: 'block',
    oneOf: ['block', 'skip'],
    doc: 'When the head of an ordering key goes dead: block the key for a person, or skip to the next',
  },
  retentionDays: {
    type: 'integer',
    default: 30,
    min: 0,
    max: 36_500,
    doc: 'How long an ended delivery is kept, counted from its end',
  },
  allowInsecure: { type: 'boolean', default: false, doc: 'Permit http:' },
  allowPrivate: { type: 'boolean', default: false, doc: 'Permit loopback, private and other special addresses' },
} as const satisfies OptionTable

type TypeOf<S extends OptionSpec> = S extends { readonly oneOf: readonly (infer V)[] }
  ? V
  : S['type'] extends 'string'
    ? string
    : S['type'] extends 'boolean'
      ? boolean
      : number

/** What a caller may pass: options without a default are required. */
export type Given<T extends OptionTable> = {
  readonly [K in keyof T as T[K] extends { readonly default: unknown } ? never : K]: TypeOf<T[K]>
} & {
  readonly [K in keyof T as T[K] extends { readonly default: unknown } ? K : never]?:
    | TypeOf<T[K]>
    | undefined
    | (T[K] extends { readonly default: null } ? null : never)
}

/** All options, defaults filled in. */
export type Complete<T extends OptionTable> = {
  readonly [K in keyof T]: TypeOf<T[K]> | (T[K] extends { readonly default: null } ? null : never)
}

type Code = 'invalid_option' | 'invalid_endpoint'

/**
 * Check `given` against the table and fill in the defaults.
 *
 * @throws OutledgerError naming the option, its value, the limit and, for an unknown name, the nearest known one
 */
export function completeOptions<T extends OptionTable>(
  table: T,
  given: object,
  code: Code = 'invalid_option',
): Complete<T> {
  for (const name of Object.keys(given)) {
    if (Object.hasOwn(table, name)) continue
    throw new OutledgerError(code, `unknown option "${name}"${didYouMean(name, Object.keys(table))}`)
  }
  const values = given as Record<string, unknown>
  const entries = Object.entries<OptionSpec>(table).map(([name, spec]) => {
    const value = values[name] ?? spec.default
    const problem = value === undefined ? 'is required' : value === null ? null : optionProblem(value, spec)
    if (problem !== null) throw new OutledgerError(code, `option ${name} ${problem}`)
    return [name, value]
  })
  return Object.fromEntries(entries) as Complete<T>
}

export type PollerOptions = Complete<typeof POLLER_OPTIONS>

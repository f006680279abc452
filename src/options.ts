// How options are checked, and those of the poller, once: type, default, range and what it means. The command line comes from it.
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

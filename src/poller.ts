// The poller: claim → attempt → classify → settle, in as many processes as you like, with nothing open while HTTP runs.
import { randomBytes } from 'node:crypto'
import { hostname } from 'node:os'
import { databaseUrlProblem } from './core/database-url.ts'
import { OutledgerError } from './errors.ts'
import { Events, type PollerEvents } from './events.ts'
import { completeOptions, type Given, POLLER_OPTIONS, type PollerOptions } from './options.ts'
import type { LoadPayload } from './payload.ts'
import { Run } from './run.ts'
import { type ResolveSecret, resolveSecret } from './secrets.ts'
import { NOTHING_SETTLED, type SettleCounts } from './settler.ts'
import type { Executor } from './sql/executor.ts'

export type PollerGiven = Given<typeof POLLER_OPTIONS> & {
  /** Turns a secret reference into its value; default: `env:NAME` and `file:/path`. */
  readonly resolveSecret?: ResolveSecret
  /** Fetches the payloads that deliveries only refer to; without it those wait. */
  readonly loadPayload?: LoadPayload | undefined
}

/** The time between a claim and the start of its requests: without it every lease would be too short to begin with. */
const START_MS = 100

/** @throws OutledgerError `invalid_option`; nothing is connected before `start` or `runOnce` */
export function createPoller({
  resolveSecret: resolve = resolveSecret,
  loadPayload: load,
  ...given
}: PollerGiven): Poller {
  for (const [name, value] of Object.entries({ resolveSecret: resolve, loadPayload: load }))
    if (value !== undefined && typeof value !== 'function')
      throw new OutledgerError(
        'invalid_option',
        `option ${name} is ${value === null ? 'null' : `a ${typeof value}`}; it must be a function`,
      )
  const options = completeOptions(POLLER_OPTIONS, given)
  const problem = databaseUrlProblem(options.databaseUrl)
  if (problem !== null) throw new OutledgerError('invalid_option', `option databaseUrl ${problem}`)
  const { leaseMs, timeoutMs, settleBudgetMs } = options
  const leastMs = timeoutMs + settleBudgetMs + START_MS
  if (leaseMs < leastMs) {
    throw new OutledgerError(
      'invalid_option',
      `leaseMs ${leaseMs} is too short for timeoutMs ${timeoutMs} + settleBudgetMs ${settleBudgetMs}: a request would outlive its lease; raise leaseMs to ${leastMs} or more`,
    )
  }
  return new Poller(options, resolve, load ?? null)
}

/** The connections of a poller, for `outledger/testing`; null of one that was started: it runs by itself. */
export let databaseOf: (poller: Poller) => Executor | null

export class Poller {
  static {
    databaseOf = (poller) => (poller.#started === null ? poller.#current().db : null)
  }

  readonly name: string
  readonly #options: PollerOptions
  readonly #resolve: ResolveSecret
  readonly #load: LoadPayload | null
  readonly #events = new Events()
  #run: Run | null = null
  #started: Promise<void> | null = null
  #stopped: Promise<void> | null = null
  /** So many stops were asked for: a start or a round that waited meanwhile has been overtaken. */
  #stops = 0

  constructor(options: PollerOptions, resolve: ResolveSecret, load: LoadPayload | null) {
    this.#options = options
    this.#resolve = resolve
    this.#load = load
    this.name = options.name ?? defaultName()
  }

  /** A listener that throws or rejects is told as `trouble`, and costs nothing else. */
  on<E extends keyof PollerEvents>(event: E, listener: (...args: PollerEvents[E]) => unknown): this {
    this.#events.on(event, listener)
    return this
  }

  /**
   * Check the schema and begin; after a stop, begin again. While a stop is under way it is waited for. The second start
   * in a row is the first one; one that failed can be repeated.
   *
   * @throws OutledgerError `database_unreachable`, `schema_missing`, `schema_version`, `foreign_schema`, `unsupported_database`
   */
  start(): Promise<void> {
    this.#started ??= this.#start()
    return this.#started
  }

  /** One round: heartbeat, discovery, one claim, its attempts and their settlement. Counts are what the database wrote. */
  async runOnce(): Promise<{ claimed: number } & SettleCounts> {
    // Not awaited when there is none: a stop that is asked for next must find the run that it ends.
    const stops = this.#stops
    if (this.#stopped !== null) await this.#stopped
    if (stops !== this.#stops) return { claimed: 0, ...NOTHING_SETTLED }
    return this.#current().runOnce()
  }

  /**
   * No new claims at once; requests in flight may finish within `graceMs`, then they are cut: what had been sent is
   * settled as unknown, what had not goes back uncharged. Resolves when everything is written and closed; after that it
   * may be started again.
   */
  stop({ graceMs = this.#options.graceMs }: { graceMs?: number } = {}): Promise<void> {
    this.#stops++
    this.#started = null
    this.#stopped ??= this.#stop(graceMs)
    return this.#stopped
  }

  async #start(): Promise<void> {
    const stops = this.#stops
    await this.#stopped
    if (stops !== this.#stops) return
    const run = this.#current()
    try {
      await run.start()
    } catch (error) {
      // Nobody need stop what never started: its connections are closed here.
      if (!run.began) {
        await run.stop(0)
        if (this.#run === run) this.#run = null
      }
      if (stops === this.#stops) this.#started = null
      throw error
    }
  }

  async #stop(graceMs: number): Promise<void> {
    try {
      await this.#run?.stop(graceMs)
    } finally {
      this.#run = null
      this.#stopped = null
    }
  }

  #current(): Run {
    this.#run ??= new Run({
      name: this.name,
      options: this.#options,
      resolve: this.#resolve,
      load: this.#load,
      events: this.#events,
    })
    return this.#run
  }
}

/** Where it runs, and a part that differs after a restart. */
function defaultName(): string {
  const host = hostname().replace(/[^A-Za-z0-9._:-]/g, '-')
  return `${host.slice(0, 80)}-${process.pid}-${randomBytes(3).toString('hex')}`
}

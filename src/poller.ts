// The poller: claim → attempt → classify → settle, in as many processes as you like, with nothing open while HTTP runs.
import { randomBytes } from 'node:crypto'
import { hostname } from 'node:os'
import { Claiming } from './claiming.ts'
import { OutledgerError } from './errors.ts'
import { codeOf, Events, type PollerEvents } from './events.ts'
import { type Loop, loop, persist } from './loop.ts'
import { purgeOnce, sweepOnce } from './maintenance.ts'
import { completeOptions, type Given, POLLER_OPTIONS, type PollerOptions } from './options.ts'
import { requireSchema } from './schema-version.ts'
import { type ResolveSecret, resolveSecret } from './secrets.ts'
import { type SettleCounts, Settler } from './settler.ts'
import { connect, type Database, type Executor } from './sql/executor.ts'
import { leave } from './sql/heartbeat.ts'

export type PollerGiven = Given<typeof POLLER_OPTIONS> & {
  /** Turns a secret reference into its value; default: `env:NAME` and `file:/path`. */
  readonly resolveSecret?: ResolveSecret
}

/** The time between a claim and the start of its requests: without it every lease would be too short to begin with. */
const START_MS = 100

/** @throws OutledgerError `invalid_option`; nothing is connected before `start` or `runOnce` */
export function createPoller({ resolveSecret: resolve = resolveSecret, ...given }: PollerGiven): Poller {
  const options = completeOptions(POLLER_OPTIONS, given)
  const { leaseMs, timeoutMs, settleBudgetMs } = options
  const leastMs = timeoutMs + settleBudgetMs + START_MS
  if (leaseMs < leastMs) {
    throw new OutledgerError(
      'invalid_option',
      `leaseMs ${leaseMs} is too short for timeoutMs ${timeoutMs} + settleBudgetMs ${settleBudgetMs}: a request would outlive its lease; raise leaseMs to ${leastMs} or more`,
    )
  }
  return new Poller(options, resolve)
}

/** The connections of a poller, for `outledger/testing`. */
export let databaseOf: (poller: Poller) => Executor

export class Poller {
  static {
    databaseOf = (poller) => poller.#db
  }

  readonly name: string
  readonly #options: PollerOptions
  readonly #events = new Events()
  readonly #db: Database
  readonly #settler: Settler
  readonly #claiming: Claiming
  /** Aborted first on stop: no more claims. */
  readonly #stopping = new AbortController()
  /** Aborted last: not even the database is waited for. */
  readonly #ending = new AbortController()
  #loops: Loop[] = []
  #started = false
  /** It may have left a row among the pollers. */
  #began = false
  #stopped: Promise<void> | null = null

  constructor(options: PollerOptions, resolve: ResolveSecret) {
    this.#options = options
    this.name = options.name ?? defaultName()
    this.#db = connect(options.databaseUrl, { max: options.connections, deadlineMs: options.databaseDeadlineMs })
    const own = { name: this.name, db: this.#db, events: this.#events }
    this.#settler = new Settler({ ...own, signal: this.#ending.signal })
    this.#claiming = new Claiming({
      ...own,
      options,
      resolve,
      settler: this.#settler,
      stopping: this.#stopping.signal,
      read: (during, work) => this.#read(during, () => work(this.#db)),
    })
  }

  on<E extends keyof PollerEvents>(event: E, listener: (...args: PollerEvents[E]) => void): this {
    this.#events.on(event, listener)
    return this
  }

  /**
   * Check the schema and begin.
   *
   * @throws OutledgerError `database_unreachable`, `schema_missing`, `schema_version`, `foreign_schema`, `unsupported_database`, `poller_stopped`
   */
  async start(): Promise<void> {
    this.#requireUnstopped()
    if (this.#started) return
    this.#started = true
    await requireSchema(this.#db)
    this.#began = true
    const { pollIntervalMs, sweepIntervalMs, purgeIntervalMs, tombstoneDays } = this.#options
    const polling = this.#every('poll', pollIntervalMs, () => this.#claiming.pollOnce())
    this.#claiming.onRoom = polling.wake
    const sweeping = this.#every('sweep', sweepIntervalMs, async () => {
      this.#events.emit('swept', await this.#read('sweep', () => sweepOnce(this.#db)))
      return sweepIntervalMs
    })
    const purging = this.#every('purge', purgeIntervalMs, async () => {
      const purged = await this.#read('purge', () => purgeOnce(this.#db, { tombstoneDays }))
      if (purged.batches > 0) this.#events.emit('purged', purged)
      return purgeIntervalMs
    })
    this.#loops = [polling, sweeping, purging]
    this.#events.emit('started', { name: this.name })
  }

  /** One round: heartbeat, discovery, one claim, its attempts and their settlement. Counts are what the database wrote. */
  async runOnce(): Promise<{ claimed: number } & SettleCounts> {
    this.#requireUnstopped()
    this.#began = true
    const before = this.#settler.counts()
    const claimed = await this.#claiming.roundOnce()
    await this.#settler.flush()
    const after = this.#settler.counts()
    for (const name of Object.keys(after) as (keyof SettleCounts)[]) after[name] -= before[name]
    return { claimed, ...after }
  }

  /**
   * No new claims at once; requests in flight may finish within `graceMs`, then they are cut: what had been sent is
   * settled as unknown, what had not goes back uncharged. Resolves when everything is written and closed.
   */
  stop({ graceMs = this.#options.graceMs }: { graceMs?: number } = {}): Promise<void> {
    this.#stopped ??= this.#stop(graceMs)
    return this.#stopped
  }

  async #stop(graceMs: number): Promise<void> {
    this.#stopping.abort()
    const end = setTimeout(() => this.#ending.abort(), graceMs + this.#options.settleBudgetMs)
    await Promise.all([this.#claiming.drain(graceMs), ...this.#loops.map(({ ended }) => ended)])
    await this.#settler.flush()
    // Once: where the database is away nobody waits for it, the others miss three heartbeats instead.
    if (this.#began) await leave(this.#db, this.name).catch(() => {})
    clearTimeout(end)
    this.#ending.abort()
    await Promise.all([this.#claiming.close(), this.#db.close()])
    if (this.#began) this.#events.emit('stopped', { name: this.name })
  }

  #requireUnstopped(): void {
    if (this.#stopped !== null)
      throw new OutledgerError('poller_stopped', `poller ${this.name} was stopped; create a new one`)
  }

  #every(during: string, pauseMs: number, once: () => Promise<number>): Loop {
    return loop(once, {
      signal: this.#stopping.signal,
      pauseMs,
      onTrouble: (error) => this.#events.emit('trouble', { during, code: codeOf(error) }),
    })
  }

  /** Until the database answers, or nothing new shall begin. */
  #read<T>(during: string, work: () => Promise<T>): Promise<T> {
    return persist(work, {
      signal: this.#stopping.signal,
      onTrouble: (code, tries) => this.#events.emit('database.trouble', { during, code, tries }),
    })
  }
}

/** Where it runs, and a part that differs after a restart. */
function defaultName(): string {
  const host = hostname().replace(/[^A-Za-z0-9._:-]/g, '-')
  return `${host.slice(0, 80)}-${process.pid}-${randomBytes(3).toString('hex')}`
}

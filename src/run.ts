// What a poller has between one start and the next stop: its connections, its loops, what it knows of the lanes.
import { Claiming } from './claiming.ts'
import { codeOf, type Events } from './events.ts'
import { type Loop, loop, persist } from './loop.ts'
import { purgeOnce, sweepOnce } from './maintenance.ts'
import type { PollerOptions } from './options.ts'
import type { LoadPayload } from './payload.ts'
import { requireSchema } from './schema-version.ts'
import type { ResolveSecret } from './secrets.ts'
import { type SettleCounts, Settler } from './settler.ts'
import { connect, type Database, type Executor } from './sql/executor.ts'
import { leave } from './sql/heartbeat.ts'

export interface RunOptions {
  readonly name: string
  readonly options: PollerOptions
  readonly resolve: ResolveSecret
  readonly load: LoadPayload | null
  readonly events: Events
}

/** One life of a poller; over when it has been stopped. */
export class Run {
  readonly #own: RunOptions
  readonly #db: Database
  readonly #settler: Settler
  readonly #claiming: Claiming
  /** Aborted first on stop: no more claims. */
  readonly #stopping = new AbortController()
  /** Aborted last: not even the database is waited for. */
  readonly #ending = new AbortController()
  #loops: Loop[] = []
  /** Those asked for by hand; a stop waits for what they have leased. */
  readonly #rounds = new Set<Promise<unknown>>()
  #stopped: Promise<void> | null = null
  /** It may have left a row among the pollers. */
  #began = false

  constructor(own: RunOptions) {
    this.#own = own
    const { name, options, events } = own
    this.#db = connect(options.databaseUrl, { max: options.connections, deadlineMs: options.databaseDeadlineMs })
    this.#settler = new Settler({ name, events, db: this.#db, signal: this.#ending.signal })
    this.#claiming = new Claiming({
      ...own,
      db: this.#db,
      settler: this.#settler,
      stopping: this.#stopping.signal,
      read: (during, work) => this.#read(during, () => work(this.#db)),
    })
  }

  /** Check the schema and begin; a stop that comes meanwhile wins. */
  async start(): Promise<void> {
    try {
      await requireSchema(this.#db)
    } catch (error) {
      if (this.#stopping.signal.aborted) return
      throw error
    }
    if (this.#stopping.signal.aborted) return
    this.#began = true
    const { name, options, events } = this.#own
    const { pollIntervalMs, sweepIntervalMs, purgeIntervalMs, tombstoneDays } = options
    const polling = this.#every('poll', pollIntervalMs, () => this.#claiming.pollOnce())
    this.#claiming.onRoom = polling.wake
    const sweeping = this.#every('sweep', sweepIntervalMs, async () => {
      events.emit('swept', await this.#read('sweep', () => sweepOnce(this.#db)))
      return sweepIntervalMs
    })
    const purging = this.#every('purge', purgeIntervalMs, async () => {
      const purged = await this.#read('purge', () => purgeOnce(this.#db, { tombstoneDays }))
      if (purged.batches > 0) events.emit('purged', purged)
      return purgeIntervalMs
    })
    this.#loops = [polling, sweeping, purging]
    events.emit('started', { name })
  }

  async runOnce(): Promise<{ claimed: number } & SettleCounts> {
    this.#began = true
    const before = this.#settler.counts()
    const round = this.#claiming.roundOnce()
    this.#rounds.add(round)
    const claimed = await round
      .catch((error: unknown) => {
        // A stop has overtaken it, and asked for nothing but its end.
        if (!this.#stopping.signal.aborted) throw error
        return 0
      })
      .finally(() => this.#rounds.delete(round))
    await this.#settler.flush()
    const after = this.#settler.counts()
    for (const name of Object.keys(after) as (keyof SettleCounts)[]) after[name] -= before[name]
    return { claimed, ...after }
  }

  get db(): Executor {
    return this.#db
  }

  get began(): boolean {
    return this.#began
  }

  stop(graceMs: number): Promise<void> {
    this.#stopped ??= this.#stop(graceMs)
    return this.#stopped
  }

  async #stop(graceMs: number): Promise<void> {
    const { name, options, events } = this.#own
    this.#stopping.abort()
    const end = setTimeout(() => this.#ending.abort(), graceMs + options.settleBudgetMs)
    await Promise.all([
      this.#claiming.drain(graceMs),
      Promise.allSettled(this.#rounds),
      ...this.#loops.map(({ ended }) => ended),
    ])
    await this.#settler.flush()
    // Once: where the database is away nobody waits for it, the others miss three heartbeats instead.
    if (this.#began) await leave(this.#db, name).catch(() => {})
    clearTimeout(end)
    this.#ending.abort()
    await Promise.all([this.#claiming.close(), this.#db.close()])
    if (this.#began) events.emit('stopped', { name })
  }

  #every(during: string, pauseMs: number, once: () => Promise<number>): Loop {
    return loop(once, {
      signal: this.#stopping.signal,
      pauseMs,
      onTrouble: (error) => this.#own.events.emit('trouble', { during, code: codeOf(error) }),
    })
  }

  /** Until the database answers, or nothing new shall begin. */
  #read<T>(during: string, work: () => Promise<T>): Promise<T> {
    return persist(work, {
      signal: this.#stopping.signal,
      onTrouble: (code, tries) => this.#own.events.emit('database.trouble', { during, code, tries }),
    })
  }
}

// Results wait here for the next settle: while one batch is being written, the next one gathers.
import { type AttemptEvent, codeOf, type Events, type ReleasedEvent } from './events.ts'
import { Health, type Said } from './health.ts'
import { isPassing, persist } from './loop.ts'
import type { Executor } from './sql/executor.ts'
import { late } from './sql/late.ts'
import { mend } from './sql/mend.ts'
import { type Lease, release } from './sql/release.ts'
import { type EndpointReport, type Reported, report } from './sql/report.ts'
import { type Result, settle } from './sql/settle.ts'

/** What has been learned; when it ended is on this process's monotonic clock, and becomes a duration when it is sent. */
export type Pending = Omit<Result, 'agoMs' | 'verdict' | 'delayMs' | 'endReason'> & {
  readonly said: Said
  readonly endedAt: number
  agoMs: number
  verdict: Result['verdict']
  delayMs: number
  endReason: string | null
  readonly event?: AttemptEvent
}

export interface SettleCounts {
  delivered: number
  retry: number
  dead: number
  block: number
  fenced: number
  released: number
}

export const NOTHING_SETTLED: Readonly<SettleCounts> = {
  ...{ delivered: 0, retry: 0, dead: 0, block: 0, fenced: 0, released: 0 },
}

/** Why leases are given back, and whose they are: all of one endpoint. */
export type Returning = Omit<ReleasedEvent, 'count'>

interface Return {
  readonly leases: readonly Lease[]
  readonly why: Returning
}

const BATCH = 200
const GATHER_MS = 10
const LATE_BATCH = 100

export class Settler {
  readonly #db: Executor
  readonly #name: string
  readonly #events: Events
  readonly #signal: AbortSignal
  readonly #health: Health
  /** Called when nothing more is to be sent to an endpoint. */
  onStopped: (endpointId: number) => void = () => {}
  #pending: Pending[] = []
  readonly #returns: Return[] = []
  #running: Promise<void> | null = null
  #writtenAt = Number.NEGATIVE_INFINITY
  readonly #counts: SettleCounts = { ...NOTHING_SETTLED }

  /** The signal ends even the retries: what is then unwritten comes back as a run-out lease. */
  constructor(options: { db: Executor; name: string; events: Events; signal: AbortSignal }) {
    this.#db = options.db
    this.#name = options.name
    this.#events = options.events
    this.#signal = options.signal
    this.#health = new Health({ events: options.events, onStopped: (endpointId) => this.onStopped(endpointId) })
  }

  /** What the database has written so far. */
  counts(): SettleCounts {
    return { ...this.#counts }
  }

  /** Results not yet written. */
  get waiting(): number {
    return this.#pending.length
  }

  /** Nothing is left to write. */
  get idle(): boolean {
    return this.#running === null
  }

  push(result: Pending): void {
    this.#pending.push(result)
    this.#running ??= this.#drain()
  }

  /** Give leases back uncharged, due again after `why.delayMs`. */
  release(leases: readonly Lease[], why: Returning): void {
    if (leases.length === 0) return
    this.#returns.push({ leases, why })
    this.#running ??= this.#drain()
  }

  /** Resolves when nothing is left to write. */
  async flush(): Promise<void> {
    while (this.#running !== null) await this.#running
  }

  async #drain(): Promise<void> {
    // Never over before it has begun: `flush` waits for the promise that is stored here.
    do {
      await this.#gather()
      try {
        for (const back of this.#returns.splice(0)) await this.#giveBack(back)
        if (this.#pending.length > 0) await this.#write(this.#pending.splice(0, BATCH))
      } catch (error) {
        // Only what waiting does not cure comes here, or the end: the leases run out and the deliveries come back.
        if (!this.#signal.aborted) this.#events.emit('trouble', { during: 'settle', code: codeOf(error) })
      }
    } while ((this.#pending.length > 0 || this.#returns.length > 0) && !this.#signal.aborted)
    this.#running = null
  }

  /** The first result is written at once; under load, those that end within a few milliseconds are written together. */
  async #gather(): Promise<void> {
    const restMs = this.#writtenAt + GATHER_MS - performance.now()
    if (restMs > 0 && this.#pending.length < BATCH) await new Promise((resolve) => setTimeout(resolve, restMs))
    else await new Promise(setImmediate)
    this.#writtenAt = performance.now()
  }

  async #giveBack({ leases, why }: Return): Promise<void> {
    const given = await this.#persist('release', () => release(this.#db, leases, why))
    this.#counts.released += given.length
    if (given.length > 0) this.#events.emit('released', { count: given.length, ...why })
  }

  async #write(batch: readonly Pending[]): Promise<void> {
    try {
      await this.#judge(batch)
    } finally {
      for (const { event, verdict } of batch)
        if (event !== undefined) this.#events.emit('attempt', verdict === event.verdict ? event : { ...event, verdict })
    }
    const refused = new Set<Pending>()
    const written = await this.#settleOrSplit(batch, refused)
    const byLease = new Map(written.map((row) => [row.delivery_id + row.token, row.verdict]))
    const fenced: Pending[] = []
    const suspect: string[] = []
    for (const result of batch) {
      const verdict = byLease.get(result.deliveryId + result.token)
      if (verdict === undefined) {
        if (!refused.has(result)) fenced.push(result)
      } else {
        this.#counts[verdict]++
        if (verdict === 'delivered' || verdict === 'retry') continue
        if (result.number > 1) suspect.push(result.deliveryId)
        const { event, endReason } = result
        if (event !== undefined)
          this.#events.emit('delivery.dead', { ...event, verdict, endReason: endReason ?? 'dead' })
      }
    }
    for (let i = 0; i < fenced.length; i += LATE_BATCH)
      suspect.push(...(await this.#late(fenced.slice(i, i + LATE_BATCH))))
    if (suspect.length > 0) await this.#persist('mend', () => mend(this.#db, suspect))
  }

  /** What an attempt found is too dear to wait for this: where the poller lacks the rights, or somebody holds the endpoint, it does without. */
  async #judge(batch: readonly Pending[]): Promise<void> {
    await this.#health.judge(batch, async (reports) => {
      const all = await this.#report(reports, 'wait')
      // Whoever holds one endpoint holds up what is said of that one only.
      return all ?? (await this.#report(reports, 'skip')) ?? []
    })
  }

  /** @returns null when one of them stays locked */
  #report(reports: EndpointReport[], locked: 'wait' | 'skip'): Promise<Reported[] | null> {
    return this.#persist('report', () =>
      report(this.#db, reports, this.#name, locked).catch((error) => {
        const code = codeOf(error)
        if (isRepeatable(code) && isPassing(error)) throw error
        this.#events.emit('trouble', { during: 'report', code })
        return code === LOCKED ? null : []
      }),
    )
  }

  /** One row that the database refuses must not keep its neighbours from being written. */
  async #settleOrSplit(batch: readonly Pending[], refused: Set<Pending>): Promise<Awaited<ReturnType<typeof settle>>> {
    try {
      return await this.#persist('settle', () => settle(this.#db, aged(batch), this.#name))
    } catch (error) {
      if (this.#signal.aborted || isPassing(error) || batch.length === 1) throw error
      const half = Math.ceil(batch.length / 2)
      const parts = [batch.slice(0, half), batch.slice(half)]
      const written = []
      for (const part of parts) {
        try {
          written.push(...(await this.#settleOrSplit(part, refused)))
        } catch (cause) {
          for (const result of part) refused.add(result)
          this.#events.emit('trouble', { during: 'settle', code: codeOf(cause) })
        }
      }
      return written
    }
  }

  /** @returns ids whose late result was a delivery */
  async #late(fenced: readonly Pending[]): Promise<string[]> {
    const noted = await this.#persist('late', () => late(this.#db, aged(fenced)))
    const kept = new Set(noted.map((row) => `${row.delivery_id}/${row.number}`))
    for (const { deliveryId, number } of fenced) {
      this.#counts.fenced++
      this.#events.emit('fenced', { deliveryId, number, late: kept.has(`${deliveryId}/${number}`) })
    }
    return fenced.filter((r) => r.outcome === 'delivered').map((r) => r.deliveryId)
  }

  #persist<T>(during: string, work: () => Promise<T>): Promise<T> {
    return persist(work, {
      signal: this.#signal,
      onTrouble: (code, tries) => this.#events.emit('database.trouble', { during, code, tries }),
    })
  }
}

/** A lock that was waited for and did not come: lock_not_available. */
const LOCKED = '55P03'

/** Of a report: the server has refused it for a while. Without an answer it may have been counted, and would count twice. */
const isRepeatable = (code: string): boolean =>
  /^[0-5FHPX][0-9A-Z]{4}$/.test(code) && !code.startsWith('42') && code !== LOCKED

/** Durations are true when they are sent: a batch that is tried again has aged. */
function aged(batch: readonly Pending[]): readonly Pending[] {
  const now = performance.now()
  for (const result of batch) result.agoMs = Math.round(now - result.endedAt)
  return batch
}

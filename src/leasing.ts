// From a claim to what is sent: a token for each try, the endpoints that it needs, and what goes back because they stopped meanwhile.
import { randomUUID } from 'node:crypto'
import type { Events } from './events.ts'
import type { PollerOptions } from './options.ts'
import type { Releases } from './releases.ts'
import type { Slots } from './slots.ts'
import type { Claimed, LeaseOptions } from './sql/claim.ts'
import { endpointsById } from './sql/endpoint.ts'
import type { Executor } from './sql/executor.ts'
import type { Targets } from './targets.ts'

export interface LeasingOptions {
  readonly name: string
  readonly options: PollerOptions
  readonly db: Executor
  readonly events: Events
  /** Aborted on stop: what is leased and not sent goes back. */
  readonly stopping: AbortSignal
  readonly read: <T>(during: string, work: (db: Executor) => Promise<T>) => Promise<T>
  readonly targets: Targets
  readonly slots: Slots
  readonly releases: Releases
}

export class Leasing {
  readonly #own: LeasingOptions
  /** When endpoints were stopped last: a claim that began before may have leased for them. */
  readonly #stoppedAt = new Map<number, number>()

  constructor(own: LeasingOptions) {
    this.#own = own
  }

  /** Leases, counts and sends; how many. */
  async lease(
    take: (db: Executor, lease: LeaseOptions) => Promise<Claimed>,
    count: (claimed: Claimed) => void,
  ): Promise<number> {
    const { leaseMs, timeoutMs } = this.#own.options
    let token = ''
    let startedAt = 0
    const claimed = await this.#own.read('claim', (db) => {
      // A new token for every try: the one whose answer was lost may have leased rows, and a token leases only once.
      token = randomUUID()
      startedAt = performance.now()
      return take(db, { leaseMs, timeoutMs, token, poller: this.#own.name })
    })
    const clockOffsetMs = claimed.nowMs - performance.now()
    count(claimed)
    if (claimed.claims.length === 0) return 0
    this.#own.events.emit('claimed', { count: claimed.claims.length })
    const leased = claimed.claims.map((row) => ({ claim: row, token, startedAt, clockOffsetMs }))
    try {
      // Asked once: while leases are held nothing is waited for that can be asked again after giving them back.
      await this.#own.targets.load(claimed.claims, (ids) => endpointsById(this.#own.db, ids))
    } catch (error) {
      this.#own.releases.unbegun(leased, this.#own.stopping.aborted ? 'shutdown' : 'endpoint_unavailable')
      throw error
    }
    if (this.#own.stopping.aborted) this.#own.releases.unbegun(leased, 'shutdown')
    else {
      const overtaken = leased.filter(({ claim }) => startedAt <= (this.#stoppedAt.get(claim.endpoint_id) ?? -1))
      this.#own.releases.unbegun(overtaken, 'endpoint_stopped')
      this.#own.slots.take(overtaken.length === 0 ? leased : leased.filter((one) => !overtaken.includes(one)))
    }
    return leased.length
  }

  /** What is leased for it from now on, by a claim that has begun already, goes back. */
  stopped(endpointId: number): void {
    this.#stoppedAt.set(endpointId, performance.now())
  }
}

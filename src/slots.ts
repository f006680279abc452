// The requests in flight, and the deliveries that are leased and come next. Claims fill what is free here, and no more.
import { Sender } from './attempt.ts'
import { attemptDelivery, type Ended, type LeasedClaim, unsent } from './delivery.ts'
import type { Lanes } from './lanes.ts'
import { type LoadPayload, Loads, type LoadsOptions } from './payload.ts'
import type { Targets } from './targets.ts'

export interface SlotsOptions {
  readonly slots: number
  readonly timeoutMs: number
  readonly settleBudgetMs: number
  readonly lanes: Lanes
  readonly targets: Targets
  readonly load: LoadPayload | null
  readonly pin: LoadsOptions['pin']
  /** Its payload could not be loaded; must not throw. */
  readonly onUnloaded: LoadsOptions['onUnloaded']
  /** How one delivery ended; must not throw. */
  readonly onEnded: (leased: LeasedClaim, ended: Ended) => void
  /** Something that should not happen did, before anything was sent. */
  readonly onFault: (error: unknown) => void
}

export class Slots {
  readonly #options: SlotsOptions
  readonly #sender = new Sender()
  /** Leased, and not ready before the payload is there. They take no slot: none is sent to meanwhile. */
  readonly #loads: Loads
  /** Leased, not yet sent, in the order in which they were claimed, or loaded. */
  #ready: LeasedClaim[] = []
  #inFlight = 0
  #whenIdle: (() => void)[] = []

  constructor(options: SlotsOptions) {
    this.#options = options
    this.#loads = new Loads({
      load: options.load,
      limit: 2 * options.slots,
      pin: options.pin,
      onLoaded: (leased) => {
        this.#ready.push(leased)
        this.#fill()
      },
      onUnloaded: (leased, problem) => {
        options.onUnloaded(leased, problem)
        if (this.idle) this.#tellIdle()
      },
    })
  }

  /** How many more may be claimed to be sent at once, and how many to wait behind those in flight. */
  room(): { free: number; ahead: number } {
    const { slots } = this.#options
    const used = this.#inFlight + this.#ready.length
    return { free: Math.max(0, slots - used), ahead: Math.min(slots, Math.max(0, 2 * slots - used)) }
  }

  get idle(): boolean {
    return this.#inFlight + this.#ready.length + this.#loads.size === 0
  }

  /** Send these as soon as there is a slot and their lane allows. */
  take(leased: readonly LeasedClaim[]): void {
    for (const one of leased) this.#take(one)
    this.#fill()
  }

  /** Nothing more is sent, to that endpoint or at all: returns what has not been. */
  withdraw(endpointId?: number): LeasedClaim[] {
    const loading = this.#loads.withdraw(endpointId)
    return this.#withdrawn(({ claim }) => endpointId === undefined || claim.endpoint_id === endpointId, loading)
  }

  /** What waits behind others until its lease is too short to be sent under: returned, not kept until it runs out. */
  withdrawStale(): LeasedClaim[] {
    return this.#withdrawn((leased) => this.#isTooShort(leased))
  }

  #withdrawn(which: (leased: LeasedClaim) => boolean, more: readonly LeasedClaim[] = []): LeasedClaim[] {
    const gone = this.#ready.filter(which)
    if (gone.length > 0) this.#ready = this.#ready.filter((leased) => !gone.includes(leased))
    if (gone.length + more.length > 0 && this.idle) this.#tellIdle()
    return [...gone, ...more]
  }

  /** Cut every request in flight; each ends by what had been sent. */
  abortAll(): void {
    this.#sender.abortAll()
  }

  /** Resolves when nothing is loading, ready or in flight. */
  untilIdle(): Promise<void> {
    return this.idle ? Promise.resolve() : new Promise((resolve) => this.#whenIdle.push(resolve))
  }

  close(): Promise<void> {
    return this.#sender.close()
  }

  #take(leased: LeasedClaim): void {
    const { claim } = leased
    if (claim.payload_ref === null) return void this.#ready.push(leased)
    const target = this.#options.targets.get(claim.endpoint_id)
    // What ends without being sent needs no payload.
    if (unsent(leased, target) !== null) this.#ready.push(leased)
    else this.#loads.begin(leased, target.endpoint.name, this.#spareMs(leased))
  }

  #fill(): void {
    const { slots, lanes } = this.#options
    // A lane at its cap is passed over, so that it costs the others nothing.
    for (let i = 0; i < this.#ready.length && this.#inFlight < slots; ) {
      const leased = this.#ready[i] as LeasedClaim
      if (lanes.startSending(leased.claim.endpoint_id, leased.claim.lane)) {
        this.#ready.splice(i, 1)
        this.#start(leased)
      } else i++
    }
  }

  #start(leased: LeasedClaim): void {
    this.#inFlight++
    const startedAt = performance.now()
    const end = (ended: Ended) => {
      this.#inFlight--
      this.#options.lanes.ended(leased.claim.endpoint_id, leased.claim.lane, performance.now() - startedAt)
      this.#options.onEnded(leased, ended)
      this.#fill()
      if (this.idle) this.#tellIdle()
    }
    this.#attempt(leased).then(end, (error) => {
      this.#options.onFault(error)
      end({ kind: 'release', reason: 'internal_fault' })
    })
  }

  #tellIdle(): void {
    for (const resolve of this.#whenIdle.splice(0)) resolve()
  }

  #timeoutMs({ claim }: LeasedClaim): number {
    return this.#options.targets.get(claim.endpoint_id).endpoint.timeoutMs ?? this.#options.timeoutMs
  }

  // The request must end, and its outcome be written, before somebody else may lease the delivery.
  #isTooShort(leased: LeasedClaim): boolean {
    return this.#spareMs(leased) < 0
  }

  #spareMs(leased: LeasedClaim): number {
    const leftMs = leased.startedAt + leased.claim.lease_ms - performance.now()
    return leftMs - this.#timeoutMs(leased) - this.#options.settleBudgetMs
  }

  async #attempt(leased: LeasedClaim): Promise<Ended> {
    if (this.#isTooShort(leased)) return { kind: 'release', reason: 'lease_too_short' }
    const target = this.#options.targets.get(leased.claim.endpoint_id)
    // Awaited: handing on another promise takes three turns more.
    return await attemptDelivery(this.#sender, leased, target, this.#timeoutMs(leased))
  }
}

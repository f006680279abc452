// Leases that go back uncharged, each with its reason, its endpoint and the time until it is due again.
import type { LeasedClaim } from './delivery.ts'
import type { ReleasedEvent } from './events.ts'
import type { Lanes } from './lanes.ts'
import type { Ownership } from './ownership.ts'
import type { Settler } from './settler.ts'
import type { Targets } from './targets.ts'

/** After a fault of ours, doubled up to the limit while it lasts. */
const FAULT_MS = 1_000
const FAULT_LIMIT_MS = 60_000

/** Longest pause between two claims of an endpoint that nothing can be sent to from here. */
const REST_MS = 5_000

/** Deliveries whose own faults are counted; beyond so many the count begins again. */
const COUNTED = 10_000

/** Claims in a row of which nothing could be sent, or for which no payload could be loaded: another poller may be able to. */
const SENT_NOTHING = 3
const LOADED_NOTHING = 5

interface Faults {
  /** Of the claim that met the last one: the faults of one claim are one. */
  readonly token: string
  readonly count: number
}

export interface ReleasesOptions {
  readonly settler: Settler
  readonly targets: Targets
  readonly lanes: Lanes
  readonly ownership: Ownership
  /** Deliveries by reference can be sent from here at all. */
  readonly canLoad: boolean
  /** The others are to know what this poller declines. */
  readonly onDeclined: () => void
}

export class Releases {
  readonly #options: ReleasesOptions
  readonly #ofEndpoints = new Map<number, Faults>()
  /** By endpoint too, since a payload was loaded last: deliveries that carry theirs get through all the same. */
  readonly #ofLoads = new Map<number, Faults>()
  /** One whose payload is missing must not be asked for every second because its neighbours get through. */
  readonly #ofDeliveries = new Map<string, Faults>()

  constructor(options: ReleasesOptions) {
    this.#options = options
  }

  /** Never begun: no slot was free in time, or nothing more shall begin, here or for its endpoint. */
  unbegun(leased: readonly LeasedClaim[], reason: string): void {
    const byEndpoint = new Map<number, LeasedClaim[]>()
    for (const one of leased) {
      const { endpoint_id: id, lane } = one.claim
      this.#options.lanes.gaveBack(id, lane)
      const mine = byEndpoint.get(id)
      if (mine === undefined) byEndpoint.set(id, [one])
      else mine.push(one)
    }
    const delayMs = reason === 'shutdown' || reason === 'endpoint_stopped' ? 0 : FAULT_MS
    for (const some of byEndpoint.values()) this.#release(some, reason, delayMs)
  }

  /** Its payload is not to be had. */
  unloaded(leased: LeasedClaim, problem: string): void {
    const { endpoint_id: id, lane } = leased.claim
    this.#options.lanes.gaveBack(id, lane)
    const count = counted(this.#ofLoads, id, leased.token)
    if (!this.#options.canLoad || count >= LOADED_NOTHING) this.#decline(id)
    this.#release([leased], 'payload_unavailable', this.#faultDelayMs(leased), problem)
  }

  /** Begun, and nothing was sent. A fault of ours is no hot loop; given back at once when we only stop. */
  unsent(leased: LeasedClaim, reason: string): void {
    const delayMs = reason === 'shutdown' ? 0 : reason === 'lease_too_short' ? FAULT_MS : this.#faultDelayMs(leased)
    this.#release([leased], reason, delayMs)
  }

  /** An attempt was made: its faults are over. */
  attempted({ claim }: LeasedClaim): void {
    if (this.#ofEndpoints.size + this.#ofLoads.size + this.#ofDeliveries.size === 0) return
    this.#ofEndpoints.delete(claim.endpoint_id)
    if (claim.payload_ref !== null) this.#ofLoads.delete(claim.endpoint_id)
    this.#ofDeliveries.delete(claim.delivery_id)
  }

  #release(leased: readonly LeasedClaim[], reason: string, delayMs: number, known: string | null = null): void {
    const target = this.#options.targets.find(leased[0]?.claim.endpoint_id ?? 0)
    const broken = reason === 'secret_unavailable' && target !== undefined && 'problem' in target ? target.why : null
    const { name = null, class: kind = null } = target?.endpoint ?? {}
    const why: Omit<ReleasedEvent, 'count'> = { reason, delayMs, endpoint: name, class: kind, problem: known ?? broken }
    this.#options.settler.release(
      leased.map(({ claim, token }) => ({ deliveryId: claim.delivery_id, token, probe: claim.standing === 'probe' })),
      why,
    )
  }

  #faultDelayMs({ claim, token }: LeasedClaim): number {
    const { endpoint_id: id } = claim
    if (this.#ofDeliveries.size >= COUNTED) this.#ofDeliveries.clear()
    const ofEndpoint = counted(this.#ofEndpoints, id, token)
    const ofDelivery = counted(this.#ofDeliveries, claim.delivery_id, token)
    const count = Math.max(ofEndpoint, ofDelivery)
    if (ofEndpoint >= SENT_NOTHING) this.#decline(id)
    const delayMs = Math.min(FAULT_LIMIT_MS, FAULT_MS * 2 ** Math.min(count - 1, 6))
    // Nothing but faults came of the last claims: the next one waits too, or it would give back the whole backlog in turn.
    if (ofEndpoint > 1) this.#options.lanes.rest(id, performance.now() + Math.min(delayMs, REST_MS))
    return delayMs
  }

  #decline(endpointId: number): void {
    const { ownership, onDeclined } = this.#options
    if (ownership.decline(endpointId, performance.now())) onDeclined()
  }
}

function counted<K>(faults: Map<K, Faults>, key: K, token: string): number {
  const last = faults.get(key)
  const count = last === undefined ? 1 : last.token === token ? last.count : last.count + 1
  faults.set(key, { token, count })
  return count
}

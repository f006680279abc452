// Payloads that the app keeps elsewhere, loaded at attempt time and beside the slots: a slow store costs the others nothing.
import { createHash } from 'node:crypto'
import { bodyProblem, bytesOf } from './core/payload.ts'
import { shownReference } from './core/reference.ts'
import type { LeasedClaim } from './delivery.ts'
import { codeOf } from './events.ts'
import type { Pin } from './sql/pin.ts'

/**
 * Fetch the body of a delivery: the text of a JSON object or array, or its bytes. They are sent as they are, and have to
 * be the same for every attempt. Throw when the store is down: the delivery is then given back, not charged. Once
 * `signal` has aborted, nobody waits for it any more.
 */
export type LoadPayload = (ref: string, about: LoadAbout) => Promise<string | Uint8Array> | string | Uint8Array

export interface LoadAbout {
  readonly key: string
  readonly type: string
  readonly endpoint: string
  /** Of the attempt, from 1. */
  readonly number: number
  readonly signal: AbortSignal
}

export interface LoadsOptions {
  readonly load: LoadPayload | null
  /** Loads at once. */
  readonly limit: number
  readonly pin: (pins: readonly Pin[]) => Promise<ReadonlyMap<string, string>>
  readonly onLoaded: (leased: LeasedClaim) => void
  /** It cannot be sent now; why, in words for the log. */
  readonly onUnloaded: (leased: LeasedClaim, problem: string) => void
}

interface Load {
  readonly leased: LeasedClaim
  readonly abort: AbortController
  /** `loadPayload` is at work; afterwards it is the database that is waited for. */
  calling: boolean
  timer: NodeJS.Timeout | undefined
}

interface Pinning {
  readonly pin: Pin
  readonly resolve: (sha256: string | undefined) => void
  readonly reject: (error: unknown) => void
}

export class Loads {
  readonly #options: LoadsOptions
  /** By endpoint, those of each in the order in which they were begun. */
  readonly #running = new Map<number, Set<Load>>()
  /** Calls by endpoint that were aborted and have not returned: each may hold memory and a connection. */
  readonly #abandoned = new Map<number, number>()
  readonly #pins: Pinning[] = []
  #pinning = false

  constructor(options: LoadsOptions) {
    this.#options = options
  }

  get size(): number {
    let size = 0
    for (const loads of this.#running.values()) size += loads.size
    return size
  }

  /** Load what this lease is for; given up after `withinMs`. */
  begin(leased: LeasedClaim, endpoint: string, withinMs: number): void {
    const { endpoint_id: id } = leased.claim
    const load: Load = { leased, abort: new AbortController(), calling: false, timer: undefined }
    const mine = this.#running.get(id) ?? new Set()
    this.#running.set(id, mine.add(load))
    const { load: loader, limit } = this.#options
    const lost = this.#abandoned.get(id) ?? 0
    if (loader === null) {
      this.#fail(load, 'this poller has no loadPayload; pass it to createPoller, or --load-payload to outledger work')
    } else if (lost >= limit) {
      this.#fail(load, `${lost} calls of loadPayload go on though their signal was aborted; let it heed the signal`)
    } else {
      load.timer = setTimeout(() => this.#fail(load, lateness(load)), Math.max(0, withinMs))
      this.#run(load, loader, endpoint).catch((error) => this.#fail(load, `loadPayload threw ${codeOf(error)}`))
      if (this.size > limit) this.#makeWay(limit)
    }
  }

  /** Nothing more is loaded, for that endpoint or at all: what was being loaded comes back. */
  withdraw(endpointId?: number): LeasedClaim[] {
    const all = [...this.#running].flatMap(([id, loads]) =>
      endpointId === undefined || id === endpointId ? [...loads] : [],
    )
    for (const load of all) this.#end(load)
    return all.map(({ leased }) => leased)
  }

  async #run(load: Load, loader: LoadPayload, endpoint: string): Promise<void> {
    const { leased } = load
    const { delivery_id: deliveryId, pinned } = leased.claim
    const loaded = await this.#call(load, loader, endpoint)
    if (!this.#isRunning(load)) return
    const found = bytesOf(loaded)
    if ('problem' in found) return this.#fail(load, `loadPayload ${found.problem}`)
    const { body } = found
    const sha256 = createHash('sha256').update(body).digest('hex')
    // What was pinned was looked at then.
    const problem = sha256 === pinned ? null : bodyProblem(body)
    if (problem !== null) return this.#fail(load, `loadPayload ${problem}`)
    const bytes = body.length
    const known = pinned ?? (await this.#pin({ deliveryId, token: leased.token, sha256, bytes }))
    if (!this.#isRunning(load)) return
    if (known === undefined) return this.#fail(load, 'the payload was erased, or the lease lost, meanwhile')
    this.#end(load)
    this.#options.onLoaded({ ...leased, loaded: known === sha256 ? body : 'changed' })
  }

  async #call(load: Load, loader: LoadPayload, endpoint: string): Promise<unknown> {
    const { key, type, number, payload_ref: ref, endpoint_id: id } = load.leased.claim
    load.calling = true
    try {
      return await loader(ref as string, { key, type, endpoint, number, signal: load.abort.signal })
    } finally {
      load.calling = false
      if (load.abort.signal.aborted) this.#abandon(id, -1)
    }
  }

  /** Those that come while one statement runs share the next. */
  #pin(pin: Pin): Promise<string | undefined> {
    return new Promise((resolve, reject) => {
      this.#pins.push({ pin, resolve, reject })
      if (!this.#pinning) this.#pinAll()
    })
  }

  async #pinAll(): Promise<void> {
    this.#pinning = true
    while (this.#pins.length > 0) {
      const batch = this.#pins.splice(0)
      try {
        const known = await this.#options.pin(batch.map(({ pin }) => pin))
        for (const { pin, resolve } of batch) resolve(known.get(pin.deliveryId))
      } catch (error) {
        for (const { reject } of batch) reject(error)
      }
    }
    this.#pinning = false
  }

  /** Too many at once: the endpoint that has the most of them gives up its latest, so that no slow one takes all. */
  #makeWay(limit: number): void {
    while (this.size > limit) {
      const [most] = [...this.#running.values()].toSorted((a, b) => b.size - a.size)
      this.#fail([...(most as Set<Load>)].at(-1) as Load, `loadPayload is slow: ${limit} calls are under way`)
    }
  }

  #isRunning(load: Load): boolean {
    return this.#running.get(load.leased.claim.endpoint_id)?.has(load) ?? false
  }

  #fail(load: Load, problem: string): void {
    if (!this.#isRunning(load)) return
    this.#end(load)
    const { payload_ref: ref } = load.leased.claim
    this.#options.onUnloaded(load.leased, `payloadRef ${JSON.stringify(shownReference(ref as string))}: ${problem}`)
  }

  #end(load: Load): void {
    const { endpoint_id: id } = load.leased.claim
    clearTimeout(load.timer)
    const mine = this.#running.get(id)
    mine?.delete(load)
    if (mine?.size === 0) this.#running.delete(id)
    if (!load.calling) return
    this.#abandon(id, 1)
    load.abort.abort()
  }

  #abandon(endpointId: number, count: 1 | -1): void {
    const now = (this.#abandoned.get(endpointId) ?? 0) + count
    if (now === 0) this.#abandoned.delete(endpointId)
    else this.#abandoned.set(endpointId, now)
  }
}

const lateness = ({ calling }: Load): string =>
  calling
    ? 'loadPayload took too long; raise leaseMs where the store is slow'
    : 'the database did not take its digest in time'

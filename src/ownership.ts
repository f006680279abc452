// Whose lane it is: every poller computes the same from the same heartbeats. One that cannot serve an endpoint says so in its
// own, and the others share its lanes; without that it would lease and give back for ever what they could send.
import { isOwner, nameHash } from './core/rendezvous.ts'
import type { Live } from './sql/heartbeat.ts'

/** After so long a poller sees whether it can serve again: longer than what it cannot serve waits at most. */
const DECLINED_MS = 120_000

export class Ownership {
  readonly #name: string
  readonly #me: number
  #live: readonly number[]
  /** Of an endpoint that some decline, those who do not; where all do, it is shared as any other. */
  readonly #serving = new Map<number, readonly number[]>()
  /** Endpoints that this poller declines, each until then on its monotonic clock. */
  readonly #declined = new Map<number, number>()

  constructor(name: string) {
    this.#name = name
    this.#me = nameHash(name)
    this.#live = [this.#me]
  }

  /** Those that are alive now. */
  learn(live: readonly Live[]): void {
    this.#live = live.map(({ name }) => nameHash(name))
    this.#serving.clear()
    for (const id of new Set([...this.#declined.keys(), ...live.flatMap(({ declines }) => declines)])) {
      const serving = live.filter(
        ({ name, declines }) => !(this.#isMe(name) ? this.#declined.has(id) : declines.includes(id)),
      )
      if (serving.length > 0)
        this.#serving.set(
          id,
          serving.map(({ name }) => nameHash(name)),
        )
    }
  }

  owns(endpointId: number, lane: number): boolean {
    const live = this.#serving.get(endpointId) ?? this.#live
    return live.includes(this.#me) && isOwner(this.#me, live, endpointId, lane)
  }

  /** May it take over what its owner leaves undone? */
  mayHelp(endpointId: number): boolean {
    return !this.#declined.has(endpointId)
  }

  /** This poller cannot serve it; answers whether that is news. */
  decline(endpointId: number, now: number): boolean {
    const isNews = !this.#declined.has(endpointId)
    this.#declined.set(endpointId, now + DECLINED_MS)
    return isNews
  }

  /** What it declines, for its next heartbeat. */
  declines(now: number): number[] {
    for (const [id, until] of this.#declined) if (now >= until) this.#declined.delete(id)
    return [...this.#declined.keys()]
  }

  #isMe(name: string): boolean {
    return name === this.#name
  }
}

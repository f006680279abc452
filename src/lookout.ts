// Heartbeat and discovery, from the loop that claims: a poller that hangs there stops beating, and is seen to be dead.
import type { Lanes } from './lanes.ts'
import type { Ownership } from './ownership.ts'
import { discover, type LaneRow } from './sql/discover.ts'
import type { Executor } from './sql/executor.ts'
import { beat } from './sql/heartbeat.ts'
import { suspects } from './sql/suspects.ts'
import { SUSPECTS_LIMIT, type Suspects } from './suspects.ts'
import { VERSION } from './version.ts'

const PAGE = 500

export interface LookoutOptions {
  readonly lanes: Lanes
  readonly suspects: Suspects
  readonly ownership: Ownership
  readonly name: string
  readonly heartbeatMs: number
  readonly discoverMs: number
  /** Somebody has stopped an endpoint of which something is leased here. */
  readonly onStopped: (endpointId: number) => void
  readonly read: <T>(during: string, work: (db: Executor) => Promise<T>) => Promise<T>
}

export class Lookout {
  readonly #options: LookoutOptions
  #beatAt = 0
  #discoverAt = 0

  constructor(options: LookoutOptions) {
    this.#options = options
  }

  /** Beat and discover, whatever the rhythm says. */
  lookNow(): Promise<void> {
    this.#beatAt = 0
    this.#discoverAt = 0
    return this.look()
  }

  /** The next look beats. */
  beatNext(): void {
    this.#beatAt = 0
  }

  /** The next look discovers. */
  discoverNext(): void {
    this.#discoverAt = 0
  }

  /** Beat and discover, each when its time has come. */
  async look(): Promise<void> {
    const { lanes, suspects: suspected, discoverMs, read, onStopped } = this.#options
    if (performance.now() >= this.#beatAt) await this.#beat()
    if (performance.now() < this.#discoverAt) return
    const rows: LaneRow[] = []
    for (let page: LaneRow[] = []; ; ) {
      const last = page.at(-1)
      const after = { afterEndpointId: last?.endpoint_id ?? 0, afterLane: last?.lane ?? -1, limit: PAGE }
      page = await read('discover', (db) => discover(db, after))
      rows.push(...page)
      if (page.length < PAGE) break
    }
    for (const endpointId of lanes.learn(rows, performance.now())) onStopped(endpointId)
    const found = await read('discover', (db) => suspects(db, { limit: SUSPECTS_LIMIT }))
    suspected.learn(found, (suspect) => lanes.mayTry(suspect))
    this.#discoverAt = performance.now() + discoverMs
  }

  async #beat(): Promise<void> {
    const { lanes, ownership, name, heartbeatMs, read } = this.#options
    // Before it is sent: what is declined while it runs is for another one.
    this.#beatAt = performance.now() + heartbeatMs
    const declines = ownership.declines(performance.now())
    ownership.learn(await read('heartbeat', (db) => beat(db, { name, heartbeatMs, version: VERSION, declines })))
    lanes.share()
  }
}

// Heartbeat and discovery, from the loop that claims: a poller that hangs there stops beating, and is seen to be dead.
import type { Lanes } from './lanes.ts'
import { discover, type LaneRow } from './sql/discover.ts'
import type { Executor } from './sql/executor.ts'
import { beat } from './sql/heartbeat.ts'
import { suspects } from './sql/suspects.ts'
import { SUSPECTS_LIMIT, type Suspects } from './suspects.ts'
import { VERSION } from './version.ts'

const PAGE = 500

export interface LookoutOptions {
  readonly name: string
  readonly heartbeatMs: number
  readonly discoverMs: number
  readonly read: <T>(during: string, work: (db: Executor) => Promise<T>) => Promise<T>
}

export class Lookout {
  readonly #lanes: Lanes
  readonly #suspects: Suspects
  readonly #options: LookoutOptions
  #beatAt = 0
  #discoverAt = 0

  constructor(lanes: Lanes, suspects: Suspects, options: LookoutOptions) {
    this.#lanes = lanes
    this.#suspects = suspects
    this.#options = options
  }

  /** Beat and discover, whatever the rhythm says. */
  lookNow(): Promise<void> {
    this.#beatAt = 0
    this.#discoverAt = 0
    return this.look()
  }

  /** The next look discovers. */
  discoverNext(): void {
    this.#discoverAt = 0
  }

  /** Beat and discover, each when its time has come. */
  async look(): Promise<void> {
    const { name, heartbeatMs, discoverMs, read } = this.#options
    if (performance.now() >= this.#beatAt) {
      this.#lanes.share(await read('heartbeat', (db) => beat(db, { name, heartbeatMs, version: VERSION })))
      this.#beatAt = performance.now() + heartbeatMs
    }
    if (performance.now() < this.#discoverAt) return
    const rows: LaneRow[] = []
    for (let page: LaneRow[] = []; ; ) {
      const last = page.at(-1)
      const after = { afterEndpointId: last?.endpoint_id ?? 0, afterLane: last?.lane ?? -1, limit: PAGE }
      page = await read('discover', (db) => discover(db, after))
      rows.push(...page)
      if (page.length < PAGE) break
    }
    this.#lanes.learn(rows, performance.now())
    const suspected = await read('discover', (db) => suspects(db, { limit: SUSPECTS_LIMIT }))
    this.#suspects.learn(suspected, (suspect) => this.#lanes.mayTry(suspect))
    this.#discoverAt = performance.now() + discoverMs
  }
}

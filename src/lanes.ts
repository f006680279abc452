// Which lanes are due, and from where to look. Ownership is a hint: SKIP LOCKED keeps two owners apart.
import { capOf, isQuick, keyOf, type Lane, newLane } from './lane.ts'
import type { Ownership } from './ownership.ts'
import type { Claimed, LaneWish } from './sql/claim.ts'
import type { LaneRow } from './sql/discover.ts'
import type { Suspect } from './sql/suspects.ts'

/** Lanes asked for in one claim. */
const WISHES_LIMIT = 256

/** What a floor stays below what was seen: transactions of this length commit behind it and are still found at once. */
export const SLACK_MS = 2_000

/** A claim without a floor every so often finds rows whose transactions were longer than the slack. */
const FULL_PASS_MS = 5_000

export interface LanesOptions {
  readonly ownership: Ownership
  readonly heartbeatMs: number
  /** Of endpoints that have none of their own. */
  readonly timeoutMs: number
  readonly settleBudgetMs: number
}

export class Lanes {
  readonly #options: LanesOptions
  readonly #lanes = new Map<string, Lane>()
  /** Endpoints of which nothing is asked before then. */
  readonly #rests = new Map<number, number>()
  #round = 0
  #start = 0

  constructor(options: LanesOptions) {
    this.#options = options
  }

  /** Ownership has changed. */
  share(): void {
    for (const lane of this.#lanes.values()) lane.mine = this.#owns(lane)
  }

  /**
   * A whole discovery: lanes that it no longer lists are forgotten once nothing of theirs is in flight. Answers the endpoints
   * that are stopped though something of theirs is leased here.
   */
  learn(rows: readonly LaneRow[], now: number): ReadonlySet<number> {
    const stopped = new Set<number>()
    this.#round++
    for (const row of rows) {
      const lane = this.#lane(row.endpoint_id, row.lane)
      lane.seen = this.#round
      lane.cap = capOf(row)
      lane.halfOpen = row.half_open
      if (row.stopped && lane.held > 0) stopped.add(row.endpoint_id)
      lane.takeOverMs = this.#takeOverMs(row)
      lane.dueAt = row.due_in_ms === null ? Number.POSITIVE_INFINITY : now + row.due_in_ms
      lane.dueAt = Math.max(lane.dueAt, this.#rests.get(row.endpoint_id) ?? 0)
      if (lane.head !== row.head) Object.assign(lane, { head: row.head, headSince: now })
    }
    for (const lane of this.#lanes.values()) {
      if (lane.seen === this.#round) continue
      lane.dueAt = Number.POSITIVE_INFINITY
      if (lane.held === 0) this.#lanes.delete(lane.key)
    }
    return stopped
  }

  /**
   * What to claim: an even share of `free` slots for each due lane, starting with another lane every time, and one of
   * `ahead` for each quick one.
   */
  wishes({ free, ahead }: { free: number; ahead: number }, now: number): LaneWish[] {
    const due = [...this.#lanes.values()].filter((lane) => !lane.halfOpen && this.#isFor(lane, now))
    const wanted = due.filter((lane) => lane.held < lane.cap || (isQuick(lane) && lane.held < 2 * lane.cap))
    const usable = free > 0 ? wanted : wanted.filter(isQuick)
    if (usable.length === 0 || free + ahead <= 0) return []
    const start = this.#start++ % usable.length
    const chosen = [...usable.slice(start), ...usable.slice(0, start)].slice(0, Math.min(free + ahead, WISHES_LIMIT))
    const share = Math.ceil(free / chosen.length)
    const quickShare = Math.ceil((free + ahead) / chosen.length)
    let slowLeft = free
    return chosen.flatMap((lane) => {
      const limit = isQuick(lane)
        ? Math.min(quickShare, 2 * lane.cap - lane.held)
        : Math.min(share, lane.cap - lane.held, slowLeft)
      if (limit <= 0) return []
      if (!isQuick(lane)) slowLeft -= limit
      const full = now >= lane.fullPassAt
      if (full) lane.fullPassAt = now + FULL_PASS_MS
      return [{ endpointId: lane.endpointId, lane: lane.lane, limit, floor: full ? null : lane.floor }]
    })
  }

  /** What a claim gave. A lane that came back short is empty for now; its floor is the clock, else the last row passed. */
  taken(wishes: readonly LaneWish[], { nowMs, claims }: Claimed, total: number): void {
    const count = new Map<string, number>()
    const passed = new Map<string, number>()
    for (const claim of claims) {
      const key = keyOf(claim.endpoint_id, claim.lane)
      count.set(key, (count.get(key) ?? 0) + 1)
      passed.set(key, Math.max(nowMs - claim.lag_ms, passed.get(key) ?? 0))
    }
    for (const { endpointId, lane: number, limit, floor } of wishes) {
      const lane = this.#lane(endpointId, number)
      const got = count.get(lane.key) ?? 0
      const last = passed.get(lane.key)
      lane.held += got
      if (got < limit && claims.length < total) {
        lane.dueAt = Number.POSITIVE_INFINITY
        lane.floor = nowMs
      } else if (floor === null) {
        // More may be where this pass ended, below the old floor; or others used up the total before it came to this lane.
        if (last === undefined) lane.fullPassAt = 0
        else lane.floor = last
      } else if (last !== undefined) lane.floor = Math.max(floor, last)
    }
  }

  /**
   * The due lanes of an endpoint that is to be probed, for the first of them may have nothing but what is tried alone. Taken
   * once: what comes of it, the next discovery tells.
   */
  probe(now: number): { readonly endpointId: number; readonly lanes: readonly number[] } | null {
    const due = [...this.#lanes.values()].filter((lane) => lane.halfOpen && this.#isFor(lane, now))
    const [first] = due
    if (first === undefined) return null
    const { endpointId } = first
    this.stop(endpointId)
    return { endpointId, lanes: due.filter((lane) => lane.endpointId === endpointId).map(({ lane }) => lane) }
  }

  /** Nothing of this endpoint is due before the next discovery says so. */
  stop(endpointId: number): void {
    for (const lane of this.#lanes.values()) if (lane.endpointId === endpointId) lane.dueAt = Number.POSITIVE_INFINITY
  }

  /** Is this one for this poller to try alone? Its lane's owner does, or anybody when it has been due for long. */
  mayTry({ endpoint_id: endpointId, lane: number, overdue_ms: overdueMs }: Suspect): boolean {
    const lane = this.#lane(endpointId, number)
    return lane.mine || (overdueMs > lane.takeOverMs && this.#options.ownership.mayHelp(endpointId))
  }

  /** A lease that is counted, and tells nothing of its lane. */
  takenOne({ claims }: Claimed): void {
    for (const { endpoint_id: endpointId, lane } of claims) this.#lane(endpointId, lane).held++
  }

  /** May another request of this lane be sent? If so it counts from now on. */
  startSending(endpointId: number, number: number): boolean {
    const lane = this.#lane(endpointId, number)
    if (lane.sending >= lane.cap) return false
    lane.sending++
    return true
  }

  /** An attempt of this lane has ended. */
  ended(endpointId: number, number: number, tookMs: number): void {
    const lane = this.#lane(endpointId, number)
    lane.sending--
    lane.held--
    lane.tookMs = lane.tookMs === Number.POSITIVE_INFINITY ? tookMs : lane.tookMs + (tookMs - lane.tookMs) / 8
  }

  /** Leases of this lane were given back unsent. */
  gaveBack(endpointId: number, number: number): void {
    this.#lane(endpointId, number).held--
  }

  /** Nothing can be sent to this endpoint from here: to claim more of it before then would only give more back. */
  rest(endpointId: number, until: number): void {
    this.#rests.set(endpointId, until)
    for (const lane of this.#lanes.values())
      if (lane.endpointId === endpointId) lane.dueAt = Math.max(lane.dueAt, until)
  }

  /** Nobody rests, and the next claim of each lane looks at all of it: also at rows whose transactions were longer than the slack. */
  forget(): void {
    for (const lane of this.#lanes.values()) lane.fullPassAt = 0
    this.#rests.clear()
  }

  /** Milliseconds until the next of the known lanes is due; Infinity when none is. */
  nextDueMs(now: number): number {
    let at = Number.POSITIVE_INFINITY
    for (const lane of this.#lanes.values()) if (lane.mine && lane.held < lane.cap) at = Math.min(at, lane.dueAt)
    return Math.max(0, at - now)
  }

  #lane(endpointId: number, number: number): Lane {
    const key = keyOf(endpointId, number)
    let lane = this.#lanes.get(key)
    if (lane === undefined) {
      lane = newLane(endpointId, number, this.#round)
      lane.mine = this.#owns(lane)
      this.#lanes.set(key, lane)
    }
    return lane
  }

  #owns({ endpointId, lane }: Lane): boolean {
    return this.#options.ownership.owns(endpointId, lane)
  }

  // Longer than a request may take: an owner whose lane is full of slow ones is at work, and its head stands still too.
  #takeOverMs({ timeout_ms: timeoutMs }: LaneRow): number {
    const { heartbeatMs, settleBudgetMs } = this.#options
    return Math.max(3 * heartbeatMs, (timeoutMs ?? this.#options.timeoutMs) + settleBudgetMs + heartbeatMs)
  }

  #isFor(lane: Lane, now: number): boolean {
    return lane.dueAt <= now && this.#mayTake(lane, now)
  }

  // An owner that works moves its heads; one whose due head has stood still for so long is not looking.
  #mayTake(lane: Lane, now: number): boolean {
    if (lane.mine) return true
    const stoodMs = now - Math.max(lane.headSince, lane.dueAt)
    return stoodMs > lane.takeOverMs && this.#options.ownership.mayHelp(lane.endpointId)
  }
}

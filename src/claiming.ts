// From the queue into the slots: look who is there, claim what there is room for, hand each end to the settler.
import type { Ended, LeasedClaim } from './delivery.ts'
import { codeOf, type Events } from './events.ts'
import { Lanes, SLACK_MS } from './lanes.ts'
import { Leasing } from './leasing.ts'
import { Lookout } from './lookout.ts'
import type { PollerOptions } from './options.ts'
import { Ownership } from './ownership.ts'
import type { LoadPayload } from './payload.ts'
import { Releases } from './releases.ts'
import type { ResolveSecret } from './secrets.ts'
import type { Settler } from './settler.ts'
import { Slots } from './slots.ts'
import { claim, claimProbe, claimSuspect } from './sql/claim.ts'
import type { Executor } from './sql/executor.ts'
import { pin } from './sql/pin.ts'
import { Suspects } from './suspects.ts'
import { Targets } from './targets.ts'

/** Results that wait for the database; beyond so many a slot, nothing more is claimed. */
const BACKLOG_PER_SLOT = 8

/** While requests end one by one, the claim waits so long for a batch to gather. */
const GATHER_MS = 5

export interface ClaimingOptions {
  readonly name: string
  readonly options: PollerOptions
  readonly resolve: ResolveSecret
  readonly load: LoadPayload | null
  readonly db: Executor
  readonly settler: Settler
  readonly events: Events
  /** Aborted on stop: what is leased and not sent goes back. */
  readonly stopping: AbortSignal
  /** Runs database work until it succeeds or nothing new shall begin. */
  readonly read: <T>(during: string, work: (db: Executor) => Promise<T>) => Promise<T>
}

export class Claiming {
  readonly #own: ClaimingOptions
  readonly #targets: Targets
  readonly #lanes: Lanes
  readonly #slots: Slots
  readonly #lookout: Lookout
  readonly #suspects = new Suspects()
  readonly #releases: Releases
  readonly #leasing: Leasing
  #idleMs = 0
  /** Called when there is room again. */
  onRoom: (withinMs: number) => void = () => {}

  constructor(own: ClaimingOptions) {
    this.#own = own
    const { name, options, read } = own
    this.#targets = new Targets(own.resolve)
    const ownership = new Ownership(name)
    this.#lanes = new Lanes({ ...options, ownership })
    this.#releases = new Releases({
      settler: own.settler,
      targets: this.#targets,
      lanes: this.#lanes,
      ownership,
      canLoad: own.load !== null,
      onDeclined: () => this.#lookout.beatNext(),
    })
    this.#slots = new Slots({
      ...options,
      lanes: this.#lanes,
      targets: this.#targets,
      load: own.load,
      pin: (pins) => read('pin', (db) => pin(db, pins)),
      onUnloaded: (leased, problem) => {
        this.#releases.unloaded(leased, problem)
        this.onRoom(GATHER_MS)
      },
      onEnded: (leased, ended) => this.#ended(leased, ended),
      onFault: (error) => own.events.emit('trouble', { during: 'attempt', code: codeOf(error) }),
    })
    this.#leasing = new Leasing({ ...own, targets: this.#targets, slots: this.#slots, releases: this.#releases })
    own.settler.onStopped = (endpointId) => this.#stopped(endpointId)
    this.#lookout = new Lookout({
      lanes: this.#lanes,
      suspects: this.#suspects,
      ownership,
      name,
      heartbeatMs: options.heartbeatMs,
      discoverMs: options.pollIntervalMs,
      onStopped: (endpointId) => this.#stopped(endpointId),
      read,
    })
  }

  /** One whole round, whatever the rhythm says: heartbeat, discovery, one claim and its attempts; what is tried alone comes before. */
  async roundOnce(): Promise<number> {
    this.#lanes.forget()
    await this.#lookout.lookNow()
    let claimed = 0
    do {
      claimed += (await this.claimOnce()) ?? 0
      await this.#slots.untilIdle()
      await this.#own.settler.flush()
    } while (this.#suspects.running)
    return claimed
  }

  /** What is leased and unsent goes back; resolves when the requests in flight have ended, cut after `graceMs`. */
  async drain(graceMs: number): Promise<void> {
    const cut = setTimeout(() => this.#slots.abortAll(), graceMs)
    this.#releases.unbegun(this.#slots.withdraw(), 'shutdown')
    await this.#slots.untilIdle()
    clearTimeout(cut)
  }

  close(): Promise<void> {
    return this.#slots.close()
  }

  /** One turn of the claiming loop; answers how long to pause. */
  async pollOnce(): Promise<number> {
    await this.#lookout.look()
    this.#releases.unbegun(this.#slots.withdrawStale(), 'lease_too_short')
    const claimed = await this.claimOnce()
    const { pollIntervalMs } = this.#own.options
    if (claimed === null) return pollIntervalMs
    if (claimed > 0) {
      this.#idleMs = 0
      return GATHER_MS
    }
    // Nothing there: look again sooner after a busy time, and at the known moment when the next retry is due.
    this.#idleMs = Math.min(pollIntervalMs, Math.max(this.#idleMs * 2, pollIntervalMs / 16))
    this.#lookout.discoverNext()
    const now = performance.now()
    return Math.min(this.#idleMs, this.#lanes.nextDueMs(now) + 1, this.#suspects.restMs(now))
  }

  /** Claims what there is room for; null when there is no room, or when the process is emptied for one that is tried alone. */
  async claimOnce(): Promise<number | null> {
    if (this.#suspects.running) {
      if (!this.#isEmpty()) return null
      this.#suspects.end(performance.now())
      this.#lookout.discoverNext()
    }
    if (this.#suspects.mayEmpty(performance.now())) return this.#isEmpty() ? this.#claimSuspect() : null
    const probed = await this.#claimProbes()
    const together = await this.#claimTogether()
    this.#suspects.othersClaimed()
    const claimed = together === null && probed === 0 ? null : probed + (together ?? 0)
    // Nothing else to do: it need not wait for its turn.
    return claimed === 0 && this.#suspects.waiting && this.#isEmpty() ? this.#claimSuspect() : claimed
  }

  /** Nothing is leased here, and what has been learned is written: a crash now is charged to nobody. */
  #isEmpty(): boolean {
    const { settler } = this.#own
    if (!this.#slots.idle) return false
    // Not waited for: the heartbeat goes on.
    if (!settler.idle) settler.flush().then(() => this.onRoom(0))
    return settler.idle
  }

  /** Whatever comes of it, its turn ends with the claim that finds the process empty again. */
  #claimSuspect(): Promise<number> {
    const ids = this.#suspects.begin(performance.now())
    return this.#leasing.lease(
      (db, lease) => claimSuspect(db, { ...lease, ids }),
      (claimed) => this.#lanes.takenOne(claimed),
    )
  }

  /** One delivery of each endpoint whose circuit is to be tried; one that gives nothing does not keep the next from it. */
  async #claimProbes(): Promise<number> {
    let leased = 0
    for (let probe = this.#nextProbe(); probe !== null; probe = this.#nextProbe()) {
      const wish = probe
      leased += await this.#leasing.lease(
        (db, lease) => claimProbe(db, { ...lease, ...wish }),
        (claimed) => this.#lanes.takenOne(claimed),
      )
    }
    return leased
  }

  #nextProbe() {
    return this.#slots.room().free > 0 ? this.#lanes.probe(performance.now()) : null
  }

  async #claimTogether(): Promise<number | null> {
    const { slots } = this.#own.options
    const room = this.#slots.room()
    const total = room.free + room.ahead
    if (total === 0 || this.#own.settler.waiting > slots * BACKLOG_PER_SLOT) return null
    const lanes = this.#lanes.wishes(room, performance.now())
    if (lanes.length === 0) return this.#slots.idle ? 0 : null
    return this.#leasing.lease(
      (db, lease) => claim(db, { ...lease, lanes, total, slackMs: SLACK_MS }),
      (claimed) => this.#lanes.taken(lanes, claimed, total),
    )
  }

  /** What is leased for a stopped endpoint would be sent to it all the same. */
  #stopped(endpointId: number): void {
    this.#leasing.stopped(endpointId)
    this.#lanes.stop(endpointId)
    this.#releases.unbegun(this.#slots.withdraw(endpointId), 'endpoint_stopped')
  }

  #ended(leased: LeasedClaim, ended: Ended): void {
    if (ended.kind === 'release') this.#releases.unsent(leased, ended.reason)
    else {
      const { said, httpStatus } = ended.result
      // Not only once it is written: the next one would be on its way by then.
      if (said.sign === 'gone' || said.backoffMs > 0) this.#stopped(said.endpointId)
      if (httpStatus === 401 || httpStatus === 403) this.#targets.doubt(said.endpointId)
      this.#releases.attempted(leased)
      this.#own.settler.push(ended.result)
    }
    this.onRoom(GATHER_MS)
  }
}

// The poller: claim → attempt → classify → settle, in as many processes as you like, with nothing open while HTTP runs.
import { randomBytes, randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import type { Ended, LeasedClaim } from './delivery.ts'
import { OutledgerError } from './errors.ts'
import { codeOf, Events, type PollerEvents } from './events.ts'
import { Lanes, SLACK_MS } from './lanes.ts'
import { Lookout } from './lookout.ts'
import { type Loop, loop, persist } from './loop.ts'
import { purgeOnce, sweepOnce } from './maintenance.ts'
import { requireSchema } from './migrate.ts'
import { type Complete, completeOptions, type Given, POLLER_OPTIONS } from './options.ts'
import { type ResolveSecret, resolveSecret } from './secrets.ts'
import { type SettleCounts, Settler } from './settler.ts'
import { Slots } from './slots.ts'
import { claim } from './sql/claim.ts'
import { connect, type Database } from './sql/executor.ts'
import { leave } from './sql/heartbeat.ts'
import { Targets } from './targets.ts'

export type PollerOptions = Complete<typeof POLLER_OPTIONS>
export type PollerGiven = Given<typeof POLLER_OPTIONS> & {
  /** Turns a secret reference into its value; default: `env:NAME` and `file:/path`. */
  readonly resolveSecret?: ResolveSecret
}

/** While requests end one by one, the claim waits so long for a batch to gather. */
const GATHER_MS = 2

/** Results that wait for the database; beyond so many a slot, nothing more is claimed. */
const BACKLOG_PER_SLOT = 8

/** @throws OutledgerError `invalid_option`; nothing is connected before `start` or `runOnce` */
export function createPoller({ resolveSecret: resolve = resolveSecret, ...given }: PollerGiven): Poller {
  const options = completeOptions(POLLER_OPTIONS, given)
  const { leaseMs, timeoutMs, settleBudgetMs } = options
  if (leaseMs < timeoutMs + settleBudgetMs) {
    throw new OutledgerError(
      'invalid_option',
      `leaseMs ${leaseMs} is shorter than timeoutMs ${timeoutMs} + settleBudgetMs ${settleBudgetMs}: a request would outlive its lease; raise leaseMs to ${timeoutMs + settleBudgetMs} or more`,
    )
  }
  return new Poller(options, resolve)
}

export class Poller {
  readonly name: string
  readonly #options: PollerOptions
  readonly #events = new Events()
  readonly #db: Database
  readonly #targets: Targets
  readonly #lanes: Lanes
  readonly #lookout: Lookout
  readonly #slots: Slots
  readonly #settler: Settler
  /** Aborted first on stop: no more claims. */
  readonly #stopping = new AbortController()
  /** Aborted last: not even the database is waited for. */
  readonly #ending = new AbortController()
  readonly #faults = new Map<number, number>()
  #loops: Loop[] = []
  #stopped: Promise<void> | null = null
  #idleMs = 0

  constructor(options: PollerOptions, resolve: ResolveSecret) {
    this.#options = options
    this.name =
      options.name ??
      `${hostname()
        .replace(/[^A-Za-z0-9._:-]/g, '-')
        .slice(0, 80)}-${process.pid}-${randomBytes(3).toString('hex')}`
    this.#db = connect(options.databaseUrl, { max: options.connections, deadlineMs: options.databaseDeadlineMs })
    this.#targets = new Targets(resolve)
    this.#lanes = new Lanes({ name: this.name, takeOverMs: 3 * options.heartbeatMs })
    this.#slots = new Slots({
      ...options,
      lanes: this.#lanes,
      targets: this.#targets,
      onEnded: (leased, ended) => this.#ended(leased, ended),
    })
    this.#lookout = new Lookout(this.#lanes, {
      name: this.name,
      heartbeatMs: options.heartbeatMs,
      discoverMs: options.pollIntervalMs,
      read: (during, work) => this.#read(during, () => work(this.#db)),
    })
    this.#settler = new Settler({ db: this.#db, name: this.name, events: this.#events, signal: this.#ending.signal })
  }

  on<E extends keyof PollerEvents>(event: E, listener: (...args: PollerEvents[E]) => void): this {
    this.#events.on(event, listener as never)
    return this
  }

  /** Check the schema and begin. @throws OutledgerError `database_unreachable`, `schema_missing`, `foreign_schema`, `unsupported_database` */
  async start(): Promise<void> {
    await requireSchema(this.#db)
    const { pollIntervalMs, sweepIntervalMs, purgeIntervalMs } = this.#options
    const every = (during: string, pauseMs: number, work: () => Promise<number>) =>
      loop(work, {
        signal: this.#stopping.signal,
        pauseMs,
        onTrouble: (error) => this.#events.emit('trouble', { during, code: codeOf(error) }),
      })
    this.#loops = [
      every('poll', pollIntervalMs, () => this.#pollOnce()),
      every('sweep', sweepIntervalMs, async () => {
        this.#events.emit('swept', await this.#read('sweep', () => sweepOnce(this.#db)))
        return sweepIntervalMs
      }),
      every('purge', purgeIntervalMs, async () => {
        const { tombstoneDays } = this.#options
        const purged = await this.#read('purge', () => purgeOnce(this.#db, { tombstoneDays }))
        if (purged.batches > 0) this.#events.emit('purged', purged)
        return purgeIntervalMs
      }),
    ]
    this.#events.emit('started', { name: this.name })
  }

  /** One round: heartbeat, discovery, one claim, its attempts and their settlement. Counts are what the database wrote. */
  async runOnce(): Promise<{ claimed: number } & SettleCounts> {
    const before = { ...this.#settler.counts }
    await this.#lookout.lookNow()
    const claimed = (await this.#claimOnce()) ?? 0
    await this.#slots.untilIdle()
    await this.#settler.flush()
    const counts = Object.entries(this.#settler.counts).map(([name, n]) => [
      name,
      n - before[name as keyof SettleCounts],
    ])
    return { claimed, ...(Object.fromEntries(counts) as SettleCounts) }
  }

  /**
   * No new claims at once; requests in flight may finish within `graceMs`, then they are cut: what had been sent is
   * settled as unknown, what had not goes back uncharged. Resolves when everything is written and closed.
   */
  stop({ graceMs = this.#options.graceMs }: { graceMs?: number } = {}): Promise<void> {
    this.#stopped ??= this.#stop(graceMs)
    return this.#stopped
  }

  async #stop(graceMs: number): Promise<void> {
    this.#stopping.abort()
    const { settleBudgetMs } = this.#options
    const cut = setTimeout(() => this.#slots.abortAll(), graceMs)
    const end = setTimeout(() => this.#ending.abort(), graceMs + settleBudgetMs)
    this.#giveBack(this.#slots.withdraw())
    await Promise.all(this.#loops.map(({ ended }) => ended))
    await this.#slots.untilIdle()
    clearTimeout(cut)
    await this.#settler.flush()
    await this.#persist('leave', () => leave(this.#db, this.name)).catch(() => {})
    clearTimeout(end)
    this.#ending.abort()
    await Promise.all([this.#slots.close(), this.#db.close()])
    this.#events.emit('stopped', { name: this.name })
  }

  /** One turn of the claiming loop; answers how long to pause. */
  async #pollOnce(): Promise<number> {
    await this.#lookout.look()
    const claimed = await this.#claimOnce()
    const { pollIntervalMs } = this.#options
    if (claimed === null) return pollIntervalMs
    if (claimed > 0) {
      this.#idleMs = 0
      return GATHER_MS
    }
    // Nothing there: look again sooner after a busy time, and at the known moment when the next retry is due.
    this.#idleMs = Math.min(pollIntervalMs, Math.max(this.#idleMs * 2, pollIntervalMs / 16))
    this.#lookout.discoverNext()
    return Math.min(this.#idleMs, this.#lanes.nextDueMs(performance.now()) + 1)
  }

  /** Claims what there is room for; null when there is no room. */
  async #claimOnce(): Promise<number | null> {
    const { leaseMs, timeoutMs, slots } = this.#options
    const room = this.#slots.room()
    const total = room.free + room.ahead
    if (total === 0 || this.#settler.waiting > slots * BACKLOG_PER_SLOT) return null
    const wishes = this.#lanes.wishes(room, performance.now())
    if (wishes.length === 0) return this.#slots.idle ? 0 : null
    let token = ''
    let startedAt = 0
    const claimed = await this.#read('claim', () => {
      // A new token for every try: the one whose answer was lost may have leased rows, and a token leases only once.
      token = randomUUID()
      startedAt = performance.now()
      return claim(this.#db, { lanes: wishes, total, slackMs: SLACK_MS, leaseMs, timeoutMs, token, poller: this.name })
    })
    const clockOffsetMs = claimed.nowMs - performance.now()
    this.#lanes.taken(wishes, claimed, total)
    if (claimed.claims.length === 0) return 0
    this.#events.emit('claimed', { count: claimed.claims.length })
    const leased = claimed.claims.map((row) => ({ claim: row, token, startedAt, clockOffsetMs }))
    try {
      await this.#read('endpoints', () => this.#targets.load(this.#db, claimed.claims))
    } catch (error) {
      this.#giveBack(leased)
      throw error
    }
    if (this.#stopping.signal.aborted) this.#giveBack(leased)
    else this.#slots.take(leased)
    return leased.length
  }

  /** Leased here, never sent: the attempts are not charged. */
  #giveBack(leased: readonly LeasedClaim[]): void {
    for (const { claim: row } of leased) this.#lanes.gaveBack(row.endpoint_id, row.lane)
    this.#settler.release(leased.map(leaseOf), 'shutdown', 0)
  }

  #ended(leased: LeasedClaim, ended: Ended): void {
    const { endpoint_id: endpointId } = leased.claim
    if (ended.kind === 'release') {
      this.#settler.release([leaseOf(leased)], ended.reason, this.#faultDelayMs(endpointId, ended.reason))
    } else {
      this.#faults.delete(endpointId)
      this.#events.emit('attempt', ended.event)
      const { verdict, endReason } = ended.result
      if (verdict === 'dead' || verdict === 'block') {
        this.#events.emit('delivery.dead', { ...ended.event, endReason: endReason ?? 'dead' })
      }
      this.#settler.push(ended.result)
    }
    this.#loops[0]?.wake(GATHER_MS)
  }

  /** A fault of ours is no hot loop: 1 s, doubled up to 60 s; given back at once when we only stop. */
  #faultDelayMs(endpointId: number, reason: string): number {
    if (reason === 'shutdown' || reason === 'lease_too_short') return 0
    const faults = this.#faults.get(endpointId) ?? 0
    this.#faults.set(endpointId, faults + 1)
    return Math.min(60_000, 1_000 * 2 ** Math.min(faults, 6))
  }

  /** Until the database answers, or nothing new shall begin. */
  #read<T>(during: string, work: () => Promise<T>): Promise<T> {
    return this.#persist(during, work, this.#stopping.signal)
  }

  #persist<T>(during: string, work: () => Promise<T>, signal = this.#ending.signal): Promise<T> {
    return persist(work, {
      signal,
      onTrouble: (code, tries) => this.#events.emit('database.trouble', { during, code, tries }),
    })
  }
}

const leaseOf = ({ claim: row, token }: LeasedClaim) => ({ deliveryId: row.delivery_id, token })

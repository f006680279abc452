// What a batch of attempts says of its endpoints is written before the batch is settled: the rejections that pause an endpoint
// decide which deliveries end. While all is well nothing is said.
import { isRejected, reportOf, type Sign, spared } from './core/health.ts'
import type { Verdict } from './core/state.ts'
import type { Events } from './events.ts'
import type { Claim } from './sql/claim.ts'
import type { EndpointReport, Reported } from './sql/report.ts'

/** What an attempt says of its endpoint. */
export interface Said {
  readonly endpointId: number
  /** Of the endpoint when it was claimed: what was begun before a change says nothing of what has been changed. */
  readonly version: number
  readonly sign: Sign
  /** Asked for by the receiver, for all deliveries; 0: nothing. */
  readonly backoffMs: number
  /** What was held against the endpoint when it was claimed. */
  readonly standing: Claim['standing']
  /** Until the next attempt, should the delivery not end though it was rejected. */
  readonly sparedMs: number
  /** Its budget or its horizon is used up. */
  readonly exhausted: boolean
}

export interface Judged {
  readonly said: Said
  readonly endedAt: number
  readonly reason: string | null
  verdict: Verdict
  delayMs: number
  endReason: string | null
}

export interface HealthOptions {
  readonly events: Events
  /** Nothing more is to be sent to it: what is leased and unsent goes back. */
  readonly onStopped: (endpointId: number) => void
}

export class Health {
  readonly #options: HealthOptions
  /** Of which this poller has said something bad since their last success: it may be younger than the claim of the next one. */
  readonly #troubled = new Set<number>()

  constructor(options: HealthOptions) {
    this.#options = options
  }

  /**
   * Reports what there is to report, and keeps alive what a paused endpoint rejected. `write` answers nothing of an endpoint
   * that it could not write, or that has been changed since: no pause would come of that, however many were rejected.
   */
  async judge(batch: readonly Judged[], write: (reports: EndpointReport[]) => Promise<Reported[]>): Promise<void> {
    const groups = this.#groups(batch)
    if (groups.size === 0) return
    const now = performance.now()
    const told = await write([...groups].map(([id, group]) => reportedOf(id, newest(group), now)))
    const known = new Map(told.map((one) => [one.endpoint_id, one]))
    for (const [id, group] of groups) {
      const one = known.get(id)
      const counted = one === undefined ? [] : newest(group)
      const signs = counted.map(({ said }) => said.sign)
      const goOn = spared(signs, one?.rejections ?? 0)
      for (const [i, result] of counted.entries()) if (goOn[i]) spare(result)
      for (const result of group)
        if (isRejected(result.said.sign) && !result.said.exhausted && !counted.includes(result)) spare(result)
      if (one !== undefined) this.#tell(one)
    }
  }

  /** Results by endpoint in the order in which they ended, where there is something to say. */
  #groups(batch: readonly Judged[]): Map<number, Judged[]> {
    const groups = new Map<number, Judged[]>()
    for (const { said } of batch) {
      const { endpointId, sign, standing, backoffMs } = said
      const good = sign === 'success' || (sign === 'nothing' && backoffMs === 0)
      if (good && standing === null && !this.#troubled.has(endpointId)) continue
      if (sign === 'success') this.#troubled.delete(endpointId)
      else this.#troubled.add(endpointId)
      groups.set(endpointId, [])
    }
    if (groups.size === 0) return groups
    for (const result of batch) groups.get(result.said.endpointId)?.push(result)
    for (const group of groups.values()) group.sort((a, b) => a.endedAt - b.endedAt)
    return groups
  }

  #tell({ endpoint_id: id, name: endpoint, class: kind, paused, tripped_ms, backoff_ms, closed }: Reported): void {
    const { events, onStopped } = this.#options
    const about = { endpoint, class: kind }
    if (closed) events.emit('endpoint.opened', about)
    if (backoff_ms !== null)
      events.emit('endpoint.stopped', { ...about, stop: 'backing off', reason: null, forMs: backoff_ms })
    if (tripped_ms !== null)
      events.emit('endpoint.stopped', { ...about, stop: 'tripped', reason: null, forMs: tripped_ms })
    if (paused !== null) events.emit('endpoint.stopped', { ...about, stop: 'paused', reason: paused, forMs: null })
    if (paused !== null || tripped_ms !== null || backoff_ms !== null) onStopped(id)
  }
}

/** Those of the latest version of their endpoint. */
function newest(group: readonly Judged[]): readonly Judged[] {
  const version = Math.max(...group.map(({ said }) => said.version))
  return group.filter(({ said }) => said.version === version)
}

function spare(result: Judged): void {
  Object.assign(result, { verdict: 'retry', delayMs: result.said.sparedMs, endReason: null })
}

function reportedOf(endpointId: number, group: readonly Judged[], now: number): EndpointReport {
  const report = reportOf(group.map(({ said }) => said.sign))
  const probe = group.find(({ said }) => said.standing === 'probe')
  const rejected = group.findLast(({ said }) => isRejected(said.sign))
  const failed = report.failingFrom === null ? undefined : group[report.failingFrom]
  return {
    ...report,
    endpointId,
    version: group[0]?.said.version ?? 0,
    failingMs: failed === undefined ? 0 : Math.round(now - failed.endedAt),
    backoffMs: Math.round(Math.max(...group.map(({ said }) => said.backoffMs))),
    probe: probe === undefined ? null : probe.said.sign === 'failure' ? 'failed' : 'ended',
    reason: rejected?.reason ?? null,
  }
}

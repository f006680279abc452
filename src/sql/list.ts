// Deliveries by what is known of them, newest first, each from the narrowest view that has it: rare ones are found without reading history.
import { OPEN_STATES } from '../core/state.ts'
import { type Executor, iso, type Value } from './executor.ts'

/** A delivery as people see it; instants are ISO text in UTC. The payload is not among it. */
export interface Delivery {
  readonly id: string
  readonly key: string
  readonly endpoint: string
  readonly class: string
  readonly type: string
  readonly orderingKey: string | null
  /** waiting, leased, parked, blocked, delivered, dead or cancelled. */
  readonly state: string
  readonly discoveredAt: string
  /** app, or the reconciliation that found it missing. */
  readonly discoveredBy: string
  readonly scheduledAt: string
  /** Attempts so far, the one in flight included. */
  readonly attempts: number
  readonly lastStatus: number | null
  readonly lastOutcome: string | null
  readonly nextAttemptAt: string | null
  readonly leaseUntil: string | null
  /** Why it ended or is blocked. */
  readonly terminalReason: string | null
  /** Could the other side have applied it, over all attempts: not_attempted, delivered, unknown, not_applied or rejected. */
  readonly certainty: string
  readonly payloadRef: string | null
  /** Hexadecimal. */
  readonly payloadSha256: string | null
  readonly payloadBytes: number | null
  readonly erasedAt: string | null
  readonly correlationId: string | null
  readonly replayOf: string | null
  readonly endedAt: string | null
  readonly deleteAfter: string | null
  /** While open: what it waits for, in words. */
  readonly whyNotYet: string | null
}

// int8 leaves as text: every driver returns that alike.
export const deliveryColumns = `v.id::text, v.key, v.endpoint, v.class, v.type, v.ordering_key as "orderingKey", v.state,
  ${iso('v.discovered_at')} as "discoveredAt", v.discovered_by as "discoveredBy", ${iso('v.scheduled_at')} as "scheduledAt",
  v.attempts, v.last_status as "lastStatus", v.last_outcome as "lastOutcome", ${iso('v.next_attempt_at')} as "nextAttemptAt",
  ${iso('v.lease_until')} as "leaseUntil", v.terminal_reason as "terminalReason", v.certainty, v.payload_ref as "payloadRef",
  encode(v.payload_sha256, 'hex') as "payloadSha256", v.payload_bytes as "payloadBytes", ${iso('v.erased_at')} as "erasedAt",
  v.correlation_id as "correlationId", v.replay_of::text as "replayOf", ${iso('v.ended_at')} as "endedAt",
  ${iso('v.delete_after')} as "deleteAfter", v.why_not_yet as "whyNotYet"`

/** An instant, or an interval before now. */
export type Moment = { readonly at: string } | { readonly ago: string }

export interface Filter {
  /** One of the states, or `open` for all that have not ended. */
  readonly state: string | null
  readonly certainty: string | null
  readonly endpoint: string | null
  readonly type: string | null
  readonly orderingKey: string | null
  readonly correlationId: string | null
  readonly reason: string | null
  readonly since: Moment | null
  readonly until: Moment | null
  readonly before: string | null
  readonly limit: number
}

/** A view, and what of it: words of the lists above, so that the planner can prove that an index of few rows will do. */
type Source = readonly [view: 'open' | 'ended' | 'unknown' | 'deliveries', condition: string]

function sourcesOf({ state, certainty, reason }: Filter): readonly Source[] {
  const open = state === 'open' || OPEN_STATES.some((one) => one === state)
  const is = state === null || state === 'open' ? 'true' : `v.state = '${state}'`
  if (certainty === 'unknown') return [['unknown', state === 'open' ? `v.ended_at is null` : is]]
  if (open) return [['open', is]]
  if (state !== null) return [['ended', is]]
  if (certainty === 'not_attempted') return [['open', is]]
  // Neither stands at what was delivered, and that is all of history.
  if (reason !== null || certainty === 'not_applied' || certainty === 'rejected')
    return [
      ['open', is],
      ['ended', `v.state = 'dead'`],
      ['ended', `v.state = 'cancelled'`],
    ]
  return [['deliveries', is]]
}

/**
 * One row of which the planner expects ten thousand (json_array_elements), so that it walks an index from its newest end
 * rather than sort a queue that it believes empty.
 */
const MANY = ` cross join json_array_elements('[0]') m1 cross join json_array_elements('[0]') m2`

/** At most `limit` deliveries, newest first. */
export function list(db: Executor, filter: Filter): Promise<Delivery[]> {
  const values: Value[] = []
  const param = (value: string) => `$${values.push(value)}::text`
  const momentOf = (moment: Moment) =>
    'at' in moment ? `${param(moment.at)}::timestamptz` : `statement_timestamp() - ${param(moment.ago)}::interval`
  const { certainty, endpoint, type, orderingKey, correlationId, reason, since, until, before } = filter
  const where = [
    before !== null && `v.id < ${param(before)}::bigint`,
    certainty !== null && `v.certainty = ${param(certainty)}`,
    endpoint !== null && `v.endpoint = ${param(endpoint)}`,
    type !== null && `v.type = ${param(type)}`,
    orderingKey !== null && `v.ordering_key = ${param(orderingKey)}`,
    correlationId !== null && `v.correlation_id = ${param(correlationId)}`,
    reason !== null && `v.terminal_reason = ${param(reason)}`,
    since !== null && `v.discovered_at >= ${momentOf(since)}`,
    until !== null && `v.discovered_at < ${momentOf(until)}`,
  ].filter((condition) => condition !== false)
  const newest = `order by v.id desc limit ${param(String(filter.limit))}::int`
  const parts = sourcesOf(filter).map(
    ([view, condition]) =>
      `(select v.* from outbox.${view} v${view === 'open' ? MANY : ''} where ${[condition, ...where].join(' and ')} ${newest})`,
  )
  return db.run<Delivery>(`select ${deliveryColumns} from (${parts.join(' union all ')}) v ${newest}`, values)
}

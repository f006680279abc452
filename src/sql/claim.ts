/** waiting | leased → leased */
// Take due rows of several lanes at once, with a limit for each; a run-out lease is a due row, and its attempt was lost.
// What has been lost too often is passed over, and taken by a claim of its own: it is tried alone (case C07).
import { SUSPECT_FROM } from '../core/suspicion.ts'
import { arrayLiteral, type Executor } from './executor.ts'
import { lostAttempts } from './lost.ts'

export interface LaneWish {
  readonly endpointId: number
  readonly lane: number
  /** At most so many rows of this lane. */
  readonly limit: number
  /** Look only at rows due from here on, in epoch milliseconds of the database's clock; null: at all. See lanes.ts. */
  readonly floor: number | null
}

/** One leased delivery. Ages and lag are milliseconds at the moment of the claim. */
export interface Claim {
  readonly delivery_id: string
  readonly endpoint_id: number
  readonly endpoint_version: number
  readonly lane: number
  /**
   * What is held against its endpoint. `troubled`: failures or rejections; `probe`: it was tripped until now, and this one is
   * let through alone, to see whether it works again; null: nothing, which costs nothing on the hot path.
   */
  readonly standing: 'troubled' | 'probe' | null
  /** Number of the attempt that this lease is for. */
  readonly number: number
  /** Attempts of the current budget, this one included. */
  readonly used: number
  readonly lost: number
  readonly lag_ms: number
  readonly age_ms: number
  /** Since the start of the earliest attempt that may have been applied; null when there is none. */
  readonly maybe_applied_ms: number | null
  readonly lease_ms: number
  readonly keyed: boolean
  readonly key: string
  readonly type: string
  readonly payload: string | null
  readonly payload_ref: string | null
  /** SHA-256 of what an earlier attempt has sent or was about to send, hexadecimal; only of a delivery by reference. */
  readonly pinned: string | null
  readonly correlation_id: string | null
  readonly traceparent: string | null
}

export interface Claimed {
  /** The database's clock at the claim, in epoch milliseconds. */
  readonly nowMs: number
  readonly claims: Claim[]
}

export interface LeaseOptions {
  /** Lease of an endpoint whose timeout is at most `timeoutMs`; a longer timeout lengthens the lease by the difference. */
  readonly leaseMs: number
  readonly timeoutMs: number
  /** Proof of this lease: a fresh UUID for every call, never used twice. */
  readonly token: string
  readonly poller: string
}

export interface ClaimOptions extends LeaseOptions {
  readonly lanes: readonly LaneWish[]
  /** At most so many rows in all. */
  readonly total: number
  readonly slackMs: number
}

/** With the loss that a claim would find now. Not counted per row, so that the planner can judge it by its statistics. */
export const suspect = `(q.lost >= ${SUSPECT_FROM} or q.lost >= ${SUSPECT_FROM - 1} and q.token is not null)`

export const open = (endpointId: string, { probe = false } = {}) => `(
    select true from outbox.endpoint e
    where e.id = ${endpointId} and e.paused_at is null
      and (e.backoff_until is null or e.backoff_until <= statement_timestamp())
      and (e.tripped_until is null${probe ? ' or e.tripped_until <= statement_timestamp()' : ''}) limit 1)`

export const HEAD = `(q.ordering_key is null or not exists (
        select from outbox.queue h
        where h.endpoint_id = q.endpoint_id and h.ordering_key = q.ordering_key and h.delivery_id < q.delivery_id))`

// The CTE with the row lock must be MATERIALIZED: as a subquery of IN or FROM its LIMIT does not hold (case C01).
// Nothing is joined to queue: with statistics taken while it was empty such a join turns into table x batch.
const lanesPicked = `want as materialized (
  select w.endpoint_id, w.lane, w.n,
         coalesce(to_timestamp((w.floor - $10::text::int) / 1000.0), '-infinity') as floor
  from (select distinct on (u.endpoint_id, u.lane) u.*
        from unnest($5::text::int[], $6::text::smallint[], $7::text::int[], $8::text::bigint[])
             with ordinality as u(endpoint_id, lane, n, floor, ord)
        order by u.endpoint_id, u.lane, u.ord) w
  where ${open('w.endpoint_id')}
  order by w.ord
), picked as materialized (
  select q.*
  from want w cross join lateral (
    select q.delivery_id, q.attempts, q.token, q.leased_at, q.leased_by, q.ready_at
    from outbox.queue q
    where q.endpoint_id = w.endpoint_id and q.lane = w.lane
      and q.next_attempt_at >= w.floor and q.next_attempt_at <= statement_timestamp()
      and not ${suspect} and ${HEAD}
    order by q.next_attempt_at
    limit w.n
    for no key update skip locked) q
  limit $9::text::int
)`

/** Whoever tries a circuit keeps the others away for the length of a lease. */
const gated = (endpointId: string): string => `gated as (
  update outbox.endpoint e
  set tripped_until = clock_timestamp() + interval '1 millisecond' * ($1::text::int + greatest(0, coalesce(e.timeout_ms, 0) - $2::text::int))
  where e.id = (${endpointId}) and exists (select from picked)
)`

// By id, so that nothing is walked through to find it. It may be all that there is to try a circuit with, and is then its probe.
const suspectPicked = `gate as materialized (
  select e.id from outbox.endpoint e
  where e.id = any (array(select q.endpoint_id from outbox.queue q where q.delivery_id = any ($5::text::bigint[])))
    and e.tripped_until <= statement_timestamp()
  order by e.id
  for no key update skip locked
), picked as materialized (
  select q.endpoint_id, q.delivery_id, q.attempts, q.token, q.leased_at, q.leased_by, q.ready_at
  from outbox.queue q
  where q.delivery_id = any ($5::text::bigint[]) and q.next_attempt_at <= statement_timestamp()
    and ${suspect} and ${HEAD}
    and (${open('q.endpoint_id')} or q.endpoint_id = any (array(select g.id from gate g)) and ${open('q.endpoint_id', { probe: true })})
  order by q.next_attempt_at
  limit 1
  for no key update skip locked
), ${gated('select p.endpoint_id from picked p where p.endpoint_id = any (array(select g.id from gate g))')}`

// One delivery of a half-open endpoint, from the first lane that has one.
const probePicked = `gate as materialized (
  select e.id, e.timeout_ms from outbox.endpoint e
  where e.id = $5::text::int and e.tripped_until <= statement_timestamp() and e.paused_at is null
    and (e.backoff_until is null or e.backoff_until <= statement_timestamp())
  for no key update skip locked
), picked as materialized (
  select q.*
  from gate g cross join unnest($6::text::smallint[]) as u(lane) cross join lateral (
    select q.delivery_id, q.attempts, q.token, q.leased_at, q.leased_by, q.ready_at
    from outbox.queue q
    where q.endpoint_id = g.id and q.lane = u.lane
      and q.next_attempt_at >= '-infinity' and q.next_attempt_at <= statement_timestamp()
      and not ${suspect} and ${HEAD}
    order by q.next_attempt_at
    limit 1
    for no key update skip locked) q
  limit 1
), ${gated('select g.id from gate g')}`

const leasing = (picked: string): string => `
with ${picked}, ${lostAttempts('picked')}, leased as (
  update outbox.queue q
  set ready_at = q.next_attempt_at, leased_at = clock_timestamp(), leased_by = $4::text, token = $3::text::uuid,
      next_attempt_at = clock_timestamp() + interval '1 millisecond' * ($1::text::int + greatest(0, coalesce(
        (select e.timeout_ms from outbox.endpoint e where e.id = q.endpoint_id), 0) - $2::text::int)),
      attempts = q.attempts + 1,
      first_attempt_at = coalesce(q.first_attempt_at, clock_timestamp()),
      lost = case when q.token is null then q.lost else q.lost + 1 end,
      maybe_applied_at = case when q.token is null then q.maybe_applied_at else coalesce(q.maybe_applied_at, q.leased_at) end
  where q.delivery_id = any (array(select p.delivery_id from picked p))
  returning q.*
)
select t.now_ms, c.delivery_id, c.endpoint_id, c.endpoint_version, c.standing, c.lane, c.number, c.used, c.lost, c.lag_ms, c.age_ms, c.maybe_applied_ms,
       c.lease_ms, c.keyed, c.key, c.type, c.payload, c.payload_ref, c.pinned, c.correlation_id, c.traceparent
from (select floor(date_part('epoch', statement_timestamp()) * 1000) as now_ms) t
left join (
  select l.delivery_id::text, l.endpoint_id, e.version as endpoint_version, e.standing, l.lane, l.attempts as number, l.attempts - l.base as used, l.lost,
         greatest(0, floor(date_part('epoch', l.leased_at - l.ready_at) * 1000)) as lag_ms,
         floor(date_part('epoch', l.leased_at - l.first_attempt_at) * 1000) as age_ms,
         floor(date_part('epoch', l.leased_at - l.maybe_applied_at) * 1000) as maybe_applied_ms,
         floor(date_part('epoch', l.next_attempt_at - l.leased_at) * 1000) as lease_ms,
         l.ordering_key is not null as keyed, l.ready_at,
         d.key, d.type, d.payload::text, d.payload_ref, case when d.payload_ref is not null then encode(d.payload_sha256, 'hex') end as pinned,
         d.correlation_id, d.traceparent
  from leased l
  cross join lateral (
    select e.version, case when e.tripped_until is not null then 'probe' when e.failures > 0 or e.rejections > 0 then 'troubled' end as standing
    from outbox.endpoint e where e.id = l.endpoint_id limit 1) e
  cross join lateral (
    select d.key, d.type, d.payload, d.payload_ref, d.payload_sha256, d.correlation_id, d.traceparent
    from outbox.delivery d where d.id = l.delivery_id limit 1) d
) c on true
order by c.ready_at`

const togetherText = leasing(lanesPicked)
const suspectText = leasing(suspectPicked)
const probeText = leasing(probePicked)

/** Lease due rows. A row that another transaction holds is skipped; a stopped endpoint's lanes give nothing. */
export function claim(db: Executor, options: ClaimOptions): Promise<Claimed> {
  const { lanes } = options
  return claimed(db, togetherText, options, [
    arrayLiteral(lanes.map((l) => l.endpointId)),
    arrayLiteral(lanes.map((l) => l.lane)),
    arrayLiteral(lanes.map((l) => l.limit)),
    arrayLiteral(lanes.map((l) => l.floor)),
    String(options.total),
    String(options.slackMs),
  ])
}

/** Lease one of these, the longest due first, if it still has to be tried alone and nobody else has it. */
export function claimSuspect(
  db: Executor,
  options: LeaseOptions & { readonly ids: readonly string[] },
): Promise<Claimed> {
  return claimed(db, suspectText, options, [arrayLiteral(options.ids)])
}

/** Lease one due delivery of these lanes of an endpoint that was tripped until now; none where another probe is under way. */
export function claimProbe(
  db: Executor,
  options: LeaseOptions & { readonly endpointId: number; readonly lanes: readonly number[] },
): Promise<Claimed> {
  return claimed(db, probeText, options, [String(options.endpointId), arrayLiteral(options.lanes)])
}

async function claimed(db: Executor, text: string, options: LeaseOptions, values: string[]): Promise<Claimed> {
  const { leaseMs, timeoutMs, token, poller } = options
  const rows = await db.run<Claim & { now_ms: number }>(text, [
    String(leaseMs),
    String(timeoutMs),
    token,
    poller,
    ...values,
  ])
  // There is always a row: without a claim it only tells the clock.
  const first = rows[0]
  if (first === undefined) throw new Error('claim returned no clock')
  return { nowMs: first.now_ms, claims: first.delivery_id === null ? [] : rows }
}

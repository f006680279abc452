// What attempts say of their endpoints, added to what all pollers know of them: the circuit, the pause, the time asked for.
import { REJECTIONS_LIMIT, type Report, TRIP } from '../core/health.ts'
import { arrayLiteral, type Executor } from './executor.ts'

export interface EndpointReport extends Report {
  readonly endpointId: number
  /** Of the endpoint that was tried; nothing is known of another one. */
  readonly version: number
  /** How long ago the first of its failures ended. */
  readonly failingMs: number
  /** Asked for by a 429 or a Retry-After; 0: nothing. */
  readonly backoffMs: number
  /** What became of the delivery that was let through to see whether it works again; null: there was none. */
  readonly probe: 'failed' | 'ended' | null
  /** Of the last rejection. */
  readonly reason: string | null
}

/** What is known now. */
export interface Reported {
  readonly endpoint_id: number
  readonly name: string
  readonly class: string
  /** Rejected in a row before this report. */
  readonly rejections: number
  /** Paused by this report, and why. */
  readonly paused: string | null
  /** Nothing is let through for so long from now on, because of this report. */
  readonly tripped_ms: number | null
  readonly backoff_ms: number | null
  /** It was tripped, and this report has closed the circuit. */
  readonly closed: boolean
}

/** While somebody keeps an endpoint locked, in a transaction of a person's say, the outcomes of all others wait so long at most. */
const LOCK_MS = 1_000

// Rows of endpoint are locked in one order. Claims pass a locked one over or only read it, and enqueue only reads: neither waits.
const reporting = (lock: string): string => `
with input as materialized (
  select i.*, set_config('lock_timeout', $17, true) from unnest($1::text::int[], $2::text::boolean[], $3::text::int[], $4::text::bigint[], $5::text::int[], $6::text::int[],
                         $7::text::int[], $8::text::boolean[], $9::text::bigint[], $10::text::text[], $11::text::text[], $18::text::int[])
    as i(endpoint_id, succeeded, failed, failing_ms, lead, peak, tail, gone, backoff_ms, probe, reason, version)
  order by i.endpoint_id
), known as materialized (
  select i.*, e.name, e.class, e.failures, e.failing_since, e.rejections, e.trip_ms, e.tripped_until, e.backoff_until, e.paused_at,
         e.retry_delay_ms, t.now
  from input i cross join lateral (
    select e.* from outbox.endpoint e where e.id = i.endpoint_id and e.version = i.version and e.removed_at is null for ${lock}) e
  cross join lateral (select clock_timestamp() as now offset 0) t
), counted as materialized (
  select k.*, k.failed + case when k.succeeded then 0 else k.failures end as failures_now,
         k.tail + case when k.succeeded then 0 else k.rejections end as rejections_now,
         case when k.failures > 0 and not k.succeeded then k.failing_since
              when k.failed > 0 then k.now - k.failing_ms * interval '1 millisecond' end as since,
         k.paused_at is null and (k.gone or k.rejections + k.lead >= $13::text::int or k.peak >= $13::text::int) as pauses
  from known k
), next as materialized (
  select c.*, case
      when c.succeeded then null
      when c.tripped_until is null then
        case when c.failures_now >= $14::text::int and c.now - c.since >= $15::text::int * interval '1 millisecond' then $16::text::int end
      when c.probe = 'failed' then least(2.0 * coalesce(c.trip_ms, $16::text::int), greatest(c.retry_delay_ms, $16::text::int))::int
      else c.trip_ms end as trip_ms_now
  from counted c
), stopped as materialized (
  select n.*, n.trip_ms_now is not null and (n.tripped_until is null or n.probe = 'failed') as trips,
         nullif(n.backoff_ms, 0) as asked_ms,
         case when n.gone then 'endpoint_rejects: gone'
              else 'endpoint_rejects: ' || coalesce(n.reason, 'rejected') || ', ' || greatest(n.rejections + n.lead, n.peak) || ' deliveries in a row' end as why
  from next n
), changed as (
  update outbox.endpoint e
  set (failures, failing_since, rejections, trip_ms, tripped_until, backoff_until, paused_at, paused_reason) = (
    select s.failures_now, s.since, s.rejections_now, s.trip_ms_now,
           case when s.succeeded then null
                when s.trips then s.now + s.trip_ms_now * interval '1 millisecond'
                when s.tripped_until is not null and s.probe is not null then least(s.tripped_until, s.now)
                else s.tripped_until end,
           greatest(s.backoff_until, s.now + s.asked_ms * interval '1 millisecond'),
           case when s.pauses then s.now else e.paused_at end, case when s.pauses then s.why else e.paused_reason end
    from stopped s where s.endpoint_id = e.id)
  where e.id = any (array(select s.endpoint_id from stopped s))
), recorded as (
  insert into outbox.operation (who, verb, subject, why, detail)
  select $12, 'endpoint pause', s.name, s.why, null from stopped s where s.pauses
)
select s.endpoint_id, s.name, s.class, s.rejections, case when s.pauses then s.why end as paused,
       case when s.trips then s.trip_ms_now end as tripped_ms, s.asked_ms::float8 as backoff_ms,
       s.succeeded and s.tripped_until is not null as closed
from stopped s`

const texts = { wait: reporting('no key update'), skip: reporting('no key update skip locked') }

/**
 * Add reports to what is known, one for each endpoint; those of another version of it are not counted. Where one stays
 * locked, `wait` fails with 55P03 and `skip` leaves it out. `poller` stands in the record of a pause.
 */
export function report(
  db: Executor,
  reports: readonly EndpointReport[],
  poller: string,
  locked: keyof typeof texts = 'wait',
): Promise<Reported[]> {
  const column = (of: (one: EndpointReport) => string | number | boolean | null) => arrayLiteral(reports.map(of))
  return db.run<Reported>(texts[locked], [
    column((r) => r.endpointId),
    column((r) => r.succeeded),
    column((r) => r.failures),
    column((r) => r.failingMs),
    column((r) => r.lead),
    column((r) => r.peak),
    column((r) => r.tail),
    column((r) => r.gone),
    column((r) => r.backoffMs),
    column((r) => r.probe),
    column((r) => r.reason),
    poller,
    String(REJECTIONS_LIMIT),
    String(TRIP.failures),
    String(TRIP.overMs),
    String(TRIP.probeMs),
    String(LOCK_MS),
    column((r) => r.version),
  ])
}

// Create an endpoint, or change one: what was and what is goes on record in the same statement.
import {
  type EndpointRow,
  type EndpointSettings,
  endpointColumns,
  endpointOf,
  type StoredEndpoint,
} from './endpoint.ts'
import { pausedForReview } from './endpoint-change.ts'
import type { Executor } from './executor.ts'

// What is written to outbox.operation holds references to secrets, never a secret.
// The insert reads from `old`, so that it is locked and read first: a row lock finds nothing once this statement has changed the row.
const text = `
with old as materialized (
  select e.* from outbox.endpoint e where e.name = $1 for update
), put as (
  insert into outbox.endpoint as e (name, class, url, secret_ref, authorization_ref, headers, timeout_ms, retry_delay_ms, backoff_factor,
    max_delay_ms, horizon_ms, max_attempts, key_window_ms, concurrency, partitions, on_dead, retention_days, allow_insecure, allow_private,
    region, processor, capture_response, unreviewed, status_policy, on_409, on_unknown, key_format)
  select $1, $2, $3, $4, $5, $6::text::json, $7::text::int, $8::text::int, $9::text::float8, $10::text::int, $11::text::bigint,
    $12::text::int, $13::text::bigint, $14::text::int, $15::text::smallint, $16, $17::text::int, $18::text::boolean, $19::text::boolean, $22, $23, $24::text::boolean, $25,
    $27::text::json, $28, $29, $30
  from (select count(*) from old) locked
  on conflict (name) do update
  set class = excluded.class, url = excluded.url, secret_ref = excluded.secret_ref, authorization_ref = excluded.authorization_ref,
      headers = excluded.headers, timeout_ms = excluded.timeout_ms, retry_delay_ms = excluded.retry_delay_ms,
      backoff_factor = excluded.backoff_factor, max_delay_ms = excluded.max_delay_ms, horizon_ms = excluded.horizon_ms,
      max_attempts = excluded.max_attempts, key_window_ms = excluded.key_window_ms, concurrency = excluded.concurrency,
      partitions = excluded.partitions, on_dead = excluded.on_dead, retention_days = excluded.retention_days,
      allow_insecure = excluded.allow_insecure, allow_private = excluded.allow_private, region = excluded.region, processor = excluded.processor,
      capture_response = excluded.capture_response, status_policy = excluded.status_policy, on_409 = excluded.on_409,
      on_unknown = excluded.on_unknown, key_format = excluded.key_format, removed_at = null, unreviewed = excluded.unreviewed,
      paused_at = case when excluded.unreviewed is null then e.paused_at else coalesce(e.paused_at, clock_timestamp()) end,
      paused_reason = case when excluded.unreviewed is not null and (e.paused_at is null or ${pausedForReview('e')})
                           then 'review: ' || excluded.unreviewed else e.paused_reason end,
      (failures, failing_since, rejections, trip_ms, tripped_until, backoff_until) = (
        select h.* from (values (0, null::timestamptz, 0, null::int, null::timestamptz, null::timestamptz),
                                (e.failures, e.failing_since, e.rejections, e.trip_ms, e.tripped_until, e.backoff_until)) h
        offset case when e.url = excluded.url then 1 else 0 end limit 1),
      version = e.version + $31::text::boolean::int, updated_at = case when $31::text::boolean then clock_timestamp() else e.updated_at end
  where e.version = $21::text::int
  returning e.*
), recorded as (
  insert into outbox.operation (who, verb, subject, why, detail)
  select $20, 'endpoint put', p.name, $26, json_build_object('old', (select row_to_json(o) from old o), 'new', row_to_json(p)) from put p
)
select ${endpointColumns} from put e`

export interface PutBy {
  readonly by: string
  readonly why?: string | null
  /** The version that was read; null: there was none. */
  readonly version: number | null
  /** What waits for a review; while anything does, the endpoint is paused. */
  readonly unreviewed?: string | null
  /** Some setting is another one: who has looked at this version has not seen it. */
  readonly changes: boolean
}

/**
 * Create an endpoint (`version` null) or change that version of it; old and new settings go on record with who and why.
 * Null when somebody else was faster: nothing was changed.
 */
export async function putEndpoint(
  db: Executor,
  s: EndpointSettings,
  { by, why = null, version, unreviewed = null, changes }: PutBy,
): Promise<EndpointRow | null> {
  const shown = (value: string | number | boolean | null) => (value === null ? null : String(value))
  const [row] = await db.run<StoredEndpoint>(text, [
    s.name,
    s.class,
    s.url,
    s.secret,
    s.authorization,
    s.headers,
    shown(s.timeoutMs),
    shown(s.retryDelayMs),
    shown(s.backoffFactor),
    shown(s.maxDelayMs),
    shown(s.horizonMs),
    shown(s.maxAttempts),
    shown(s.keyWindowMs),
    shown(s.concurrency),
    shown(s.partitions),
    s.onDead,
    shown(s.retentionDays),
    shown(s.allowInsecure),
    shown(s.allowPrivate),
    by,
    shown(version),
    s.region,
    s.processor,
    shown(s.captureResponse),
    unreviewed,
    why,
    s.statusPolicy,
    s.on409,
    s.onUnknown,
    s.keyFormat,
    shown(changes),
  ])
  return row === undefined ? null : endpointOf(row)
}

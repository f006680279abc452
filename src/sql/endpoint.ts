// Endpoints: put, list, and what a poller needs to know of one.
import { arrayLiteral, type Executor, iso } from './executor.ts'

/** An endpoint as stored; times are ISO text. */
export interface EndpointRow {
  readonly id: number
  readonly name: string
  readonly class: string
  readonly region: string | null
  readonly processor: string | null
  readonly url: string
  readonly secret: string
  readonly authorization: string | null
  readonly headers: string | null
  readonly timeoutMs: number | null
  readonly retryDelayMs: number
  readonly backoffFactor: number
  readonly maxDelayMs: number
  readonly horizonMs: number
  readonly maxAttempts: number | null
  readonly keyWindowMs: number
  readonly concurrency: number
  readonly partitions: number
  readonly onDead: 'block' | 'skip'
  readonly retentionDays: number
  readonly captureResponse: boolean
  readonly allowInsecure: boolean
  readonly allowPrivate: boolean
  readonly version: number
  readonly pausedAt: string | null
  readonly pausedReason: string | null
  readonly removedAt: string | null
}

/** What a person sets; the rest is the database's. */
export type EndpointSettings = Omit<EndpointRow, 'id' | 'version' | 'pausedAt' | 'pausedReason' | 'removedAt'>

// Milliseconds beyond int4 leave as float8: every driver returns that as a number, and int8 as text.
const columns = `e.id, e.name, e.class, e.region, e.processor, e.url, e.secret_ref as secret, e.authorization_ref as "authorization", e.headers::text as headers,
  e.timeout_ms as "timeoutMs", e.retry_delay_ms as "retryDelayMs", e.backoff_factor as "backoffFactor", e.max_delay_ms as "maxDelayMs",
  e.horizon_ms::float8 as "horizonMs", e.max_attempts as "maxAttempts", e.key_window_ms::float8 as "keyWindowMs", e.concurrency, e.partitions,
  e.on_dead as "onDead", e.retention_days as "retentionDays", e.capture_response as "captureResponse",
  e.allow_insecure as "allowInsecure", e.allow_private as "allowPrivate",
  e.version, ${iso('e.paused_at')} as "pausedAt", e.paused_reason as "pausedReason", ${iso('e.removed_at')} as "removedAt"`

/** All endpoints by name, retired ones last. */
export function listEndpoints(db: Executor): Promise<EndpointRow[]> {
  return db.run<EndpointRow>(`select ${columns} from outbox.endpoint e order by e.removed_at nulls first, e.name`, [])
}

export async function endpointByName(db: Executor, name: string): Promise<EndpointRow | null> {
  const [row] = await db.run<EndpointRow>(`select ${columns} from outbox.endpoint e where e.name = $1`, [name])
  return row ?? null
}

export function endpointsById(db: Executor, ids: readonly number[]): Promise<EndpointRow[]> {
  return db.run<EndpointRow>(`select ${columns} from outbox.endpoint e where e.id = any ($1::text::int[])`, [
    arrayLiteral(ids),
  ])
}

// What is written to outbox.operation holds references to secrets, never a secret.
// The insert reads from `old`, so that it is locked and read first: a row lock finds nothing once this statement has changed the row.
const putText = `
with old as materialized (
  select e.* from outbox.endpoint e where e.name = $1 for update
), put as (
  insert into outbox.endpoint as e (name, class, url, secret_ref, authorization_ref, headers, timeout_ms, retry_delay_ms, backoff_factor,
    max_delay_ms, horizon_ms, max_attempts, key_window_ms, concurrency, partitions, on_dead, retention_days, allow_insecure, allow_private,
    region, processor, capture_response)
  select $1, $2, $3, $4, $5, $6::text::json, $7::text::int, $8::text::int, $9::text::float8, $10::text::int, $11::text::bigint,
    $12::text::int, $13::text::bigint, $14::text::int, $15::text::smallint, $16, $17::text::int, $18::text::boolean, $19::text::boolean, $22, $23, $24::text::boolean
  from (select count(*) from old) locked
  on conflict (name) do update
  set class = excluded.class, url = excluded.url, secret_ref = excluded.secret_ref, authorization_ref = excluded.authorization_ref,
      headers = excluded.headers, timeout_ms = excluded.timeout_ms, retry_delay_ms = excluded.retry_delay_ms,
      backoff_factor = excluded.backoff_factor, max_delay_ms = excluded.max_delay_ms, horizon_ms = excluded.horizon_ms,
      max_attempts = excluded.max_attempts, key_window_ms = excluded.key_window_ms, concurrency = excluded.concurrency,
      partitions = excluded.partitions, on_dead = excluded.on_dead, retention_days = excluded.retention_days,
      allow_insecure = excluded.allow_insecure, allow_private = excluded.allow_private, region = excluded.region, processor = excluded.processor,
      capture_response = excluded.capture_response, removed_at = null,
      version = e.version + 1, updated_at = clock_timestamp()
  where e.version = $21::text::int
  returning e.*
), recorded as (
  insert into outbox.operation (who, verb, subject, detail)
  select $20, 'endpoint put', p.name, json_build_object('old', (select row_to_json(o) from old o), 'new', row_to_json(p)) from put p
)
select ${columns} from put e`

/**
 * Create an endpoint (`version` null) or change that version of it; old and new settings go on record with `by`.
 * Null when somebody else was faster: nothing was changed.
 */
export async function putEndpoint(
  db: Executor,
  s: EndpointSettings,
  { by, version }: { by: string; version: number | null },
): Promise<EndpointRow | null> {
  const text = (value: string | number | boolean | null) => (value === null ? null : String(value))
  const [row] = await db.run<EndpointRow>(putText, [
    s.name,
    s.class,
    s.url,
    s.secret,
    s.authorization,
    s.headers,
    text(s.timeoutMs),
    text(s.retryDelayMs),
    text(s.backoffFactor),
    text(s.maxDelayMs),
    text(s.horizonMs),
    text(s.maxAttempts),
    text(s.keyWindowMs),
    text(s.concurrency),
    text(s.partitions),
    s.onDead,
    text(s.retentionDays),
    text(s.allowInsecure),
    text(s.allowPrivate),
    by,
    text(version),
    s.region,
    s.processor,
    text(s.captureResponse),
  ])
  return row ?? null
}

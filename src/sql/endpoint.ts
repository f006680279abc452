// Endpoints as they are read: all, by name, and those that a poller needs.
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
  /** JSON object of statuses and what they mean here, `retry` or `dead`. */
  readonly statusPolicy: string | null
  readonly on409: 'retry' | 'delivered' | 'dead'
  readonly onUnknown: 'retry' | 'review'
  readonly keyFormat: 'bare' | 'sf-string'
  readonly allowInsecure: boolean
  readonly allowPrivate: boolean
  readonly version: number
  readonly pausedAt: string | null
  readonly pausedReason: string | null
  /** Until when a 429 or its Retry-After holds everything back; null when that is over. */
  readonly backoffUntil: string | null
  /** Until when the circuit lets nothing through; null: it is closed. */
  readonly trippedUntil: string | null
  /** That is over: one delivery at a time probes whether it works again. */
  readonly halfOpen: boolean
  readonly removedAt: string | null
  /** What was changed and waits for a review: `host a.example → b.example; region eu → us`. */
  readonly unreviewed: string | null
  /** Secrets that are still signed with beside `secret`, newest first. */
  readonly previousSecrets: readonly PreviousSecret[]
}

/** A secret's reference, and until when it is signed with. */
export interface PreviousSecret {
  readonly secret: string
  readonly until: string
}

type Kept =
  | 'id'
  | 'version'
  | 'pausedAt'
  | 'pausedReason'
  | 'backoffUntil'
  | 'trippedUntil'
  | 'halfOpen'
  | 'removedAt'
  | 'unreviewed'

/** What a person sets; the rest is the database's. */
export type EndpointSettings = Omit<EndpointRow, Kept | 'previousSecrets'>

// Milliseconds beyond int4 leave as float8: every driver returns that as a number, and int8 as text.
export const endpointColumns = `e.id, e.name, e.class, e.region, e.processor, e.url, e.secret_ref as secret, e.authorization_ref as "authorization", e.headers::text as headers,
  e.timeout_ms as "timeoutMs", e.retry_delay_ms as "retryDelayMs", e.backoff_factor as "backoffFactor", e.max_delay_ms as "maxDelayMs",
  e.horizon_ms::float8 as "horizonMs", e.max_attempts as "maxAttempts", e.key_window_ms::float8 as "keyWindowMs", e.concurrency, e.partitions,
  e.on_dead as "onDead", e.retention_days as "retentionDays", e.capture_response as "captureResponse",
  e.status_policy::text as "statusPolicy", e.on_409 as "on409", e.on_unknown as "onUnknown", e.key_format as "keyFormat",
  e.allow_insecure as "allowInsecure", e.allow_private as "allowPrivate",
  e.version, ${iso('e.paused_at')} as "pausedAt", e.paused_reason as "pausedReason",
  case when e.backoff_until > statement_timestamp() then ${iso('e.backoff_until')} end as "backoffUntil",
  ${iso('e.tripped_until')} as "trippedUntil", coalesce(e.tripped_until <= statement_timestamp(), false) as "halfOpen",
  ${iso('e.removed_at')} as "removedAt", e.unreviewed,
  (select coalesce(json_agg(p.value order by p.ord), '[]') from json_array_elements(e.previous_secrets) with ordinality p(value, ord)
   where (p.value ->> 'until')::timestamptz > statement_timestamp())::text as "previousSecrets"`

/** JSON leaves as text: not every client reads it alike. */
export type StoredEndpoint = Omit<EndpointRow, 'previousSecrets'> & { readonly previousSecrets: string }

export const endpointOf = (row: StoredEndpoint): EndpointRow => ({
  ...row,
  previousSecrets: JSON.parse(row.previousSecrets),
})

/** All endpoints by name, retired ones last. */
export async function listEndpoints(db: Executor): Promise<EndpointRow[]> {
  const text = `select ${endpointColumns} from outbox.endpoint e order by e.removed_at nulls first, e.name`
  return (await db.run<StoredEndpoint>(text, [])).map(endpointOf)
}

export async function endpointByName(db: Executor, name: string): Promise<EndpointRow | null> {
  const text = `select ${endpointColumns} from outbox.endpoint e where e.name = $1`
  const [row] = await db.run<StoredEndpoint>(text, [name])
  return row === undefined ? null : endpointOf(row)
}

export async function endpointsById(db: Executor, ids: readonly number[]): Promise<EndpointRow[]> {
  const text = `select ${endpointColumns} from outbox.endpoint e where e.id = any ($1::text::int[])`
  return (await db.run<StoredEndpoint>(text, [arrayLiteral(ids)])).map(endpointOf)
}

// The tables of schema outbox. Exported so that an app can query and join them; writing to them is the verbs' business.
import { sql } from 'drizzle-orm'
import {
  bigint,
  boolean,
  check,
  customType,
  doublePrecision,
  index,
  integer,
  json,
  pgSchema,
  primaryKey,
  smallint,
  text,
  timestamp,
  uuid,
} from 'drizzle-orm/pg-core'

export const bytea = customType<{ data: Uint8Array }>({ dataType: () => 'bytea' })
export const instant = (name: string) => timestamp(name, { withTimezone: true, mode: 'string' })
export const int8 = (name: string) => bigint(name, { mode: 'bigint' })
export const clock = sql`clock_timestamp()`

export const outboxSchema = pgSchema('outbox')

/** Where deliveries go: URL, secret references, policy. Retired by `removed_at`, never deleted. */
export const endpoint = outboxSchema.table(
  'endpoint',
  {
    id: integer('id').generatedAlwaysAsIdentity().primaryKey(),
    name: text('name').notNull().unique(),
    class: text('class').notNull(),
    url: text('url').notNull(),
    secretRef: text('secret_ref').notNull(),
    authorizationRef: text('authorization_ref'),
    headers: json('headers'),
    timeoutMs: integer('timeout_ms'),
    retryDelayMs: integer('retry_delay_ms').notNull(),
    backoffFactor: doublePrecision('backoff_factor').notNull(),
    maxDelayMs: integer('max_delay_ms').notNull(),
    horizonMs: bigint('horizon_ms', { mode: 'number' }).notNull(),
    maxAttempts: integer('max_attempts'),
    keyWindowMs: bigint('key_window_ms', { mode: 'number' }).notNull(),
    concurrency: integer('concurrency').notNull(),
    partitions: smallint('partitions').notNull(),
    onDead: text('on_dead').notNull(),
    retentionDays: integer('retention_days').notNull(),
    allowInsecure: boolean('allow_insecure').notNull(),
    allowPrivate: boolean('allow_private').notNull(),
    region: text('region'),
    processor: text('processor'),
    captureResponse: boolean('capture_response').notNull().default(false),
    // References that still sign until their `until`, newest first: [{ secret, until }].
    previousSecrets: json('previous_secrets').notNull().default([]),
    // What was changed and nobody has reviewed; the endpoint is paused while it stands.
    unreviewed: text('unreviewed'),
    // HTTP statuses that mean something else here than they say: { "404": "retry" }.
    statusPolicy: json('status_policy'),
    on409: text('on_409').notNull().default('retry'),
    onUnknown: text('on_unknown').notNull().default('retry'),
    keyFormat: text('key_format').notNull().default('bare'),
    // Attempts that failed in a row, since when; deliveries rejected in a row; pause before the next probe. All pollers share them.
    failures: integer('failures').notNull().default(0),
    failingSince: instant('failing_since'),
    rejections: integer('rejections').notNull().default(0),
    tripMs: integer('trip_ms'),
    pausedAt: instant('paused_at'),
    pausedReason: text('paused_reason'),
    backoffUntil: instant('backoff_until'),
    trippedUntil: instant('tripped_until'),
    removedAt: instant('removed_at'),
    version: integer('version').notNull().default(1),
    createdAt: instant('created_at').notNull().default(clock),
    updatedAt: instant('updated_at').notNull().default(clock),
  },
  (t) => [
    check('endpoint_name', sql`octet_length(${t.name}) between 1 and 200 and ${t.name} !~ '[^A-Za-z0-9._:-]'`),
    check('endpoint_class', sql`octet_length(${t.class}) between 1 and 64 and ${t.class} !~ '[^A-Za-z0-9._:-]'`),
    check('endpoint_url', sql`${t.url} ~ '^https?://' and (${t.allowInsecure} or ${t.url} ~ '^https:')`),
    check('endpoint_timeout', sql`${t.timeoutMs} > 0`),
    check('endpoint_retry', sql`${t.retryDelayMs} >= 0 and ${t.backoffFactor} >= 1 and ${t.maxDelayMs} >= 0`),
    check('endpoint_limits', sql`${t.horizonMs} >= 0 and ${t.maxAttempts} > 0`),
    check('endpoint_key_window', sql`${t.keyWindowMs} >= ${t.horizonMs}`),
    check('endpoint_partitions', sql`${t.partitions} between 1 and 1024 and ${t.partitions} <= ${t.concurrency}`),
    check('endpoint_on_dead', sql`${t.onDead} in ('block', 'skip')`),
    check('endpoint_retention', sql`${t.retentionDays} between 0 and 36500`),
    check('endpoint_on_409', sql`${t.on409} in ('retry', 'delivered', 'dead')`),
    check('endpoint_on_unknown', sql`${t.onUnknown} in ('retry', 'review')`),
    check('endpoint_key_format', sql`${t.keyFormat} in ('bare', 'sf-string')`),
    check('endpoint_health', sql`${t.failures} >= 0 and ${t.rejections} >= 0 and ${t.tripMs} > 0`),
    check('endpoint_paused', sql`(${t.pausedAt} is null) = (${t.pausedReason} is null)`),
  ],
)

/** One event for one endpoint: the fact. It changes only by erasure of the payload and by pinning a digest. */
export const delivery = outboxSchema.table(
  'delivery',
  {
    id: int8('id').generatedAlwaysAsIdentity().primaryKey(),
    key: text('key').notNull().unique(),
    endpointId: integer('endpoint_id').notNull(),
    lane: smallint('lane').notNull(),
    type: text('type').notNull(),
    orderingKey: text('ordering_key'),
    // json, not jsonb: the exact text is what is signed and sent.
    payload: json('payload'),
    payloadRef: text('payload_ref'),
    payloadSha256: bytea('payload_sha256'),
    payloadBytes: integer('payload_bytes'),
    erasedAt: instant('erased_at'),
    discoveredAt: instant('discovered_at').notNull().default(clock),
    discoveredBy: text('discovered_by').notNull(),
    scheduledAt: instant('scheduled_at').notNull(),
    correlationId: text('correlation_id'),
    traceparent: text('traceparent'),
    replayOf: int8('replay_of'),
    retentionDays: integer('retention_days'),
  },
  (t) => [
    check('delivery_key', sql`octet_length(${t.key}) between 1 and 255 and ${t.key} !~ '[^A-Za-z0-9._:-]'`),
    check('delivery_payload', sql`num_nonnulls(${t.payload}, ${t.payloadRef}, ${t.erasedAt}) = 1`),
    check('delivery_scheduled', sql`isfinite(${t.scheduledAt})`),
    check('delivery_digest', sql`octet_length(${t.payloadSha256}) = 32`),
    check('delivery_retention', sql`${t.retentionDays} between 0 and 36500`),
    check('delivery_digest_of_payload', sql`${t.payload} is null or ${t.payloadSha256} is not null`),
  ],
)

/**
 * Open work, the only hot table. `next_attempt_at` is due time, retry time and lease expiry in one:
 * token null, finite — waiting; token set — leased until then, and due again by itself afterwards;
 * infinity — parked behind an earlier row of its ordering key, or blocked when `blocked_reason` says why.
 */
export const queue = outboxSchema.table(
  'queue',
  {
    deliveryId: int8('delivery_id').primaryKey(),
    nextAttemptAt: instant('next_attempt_at').notNull(),
    leasedAt: instant('leased_at'),
    // next_attempt_at as it was before the claim: the lag behind schedule is leased_at - ready_at.
    readyAt: instant('ready_at'),
    firstAttemptAt: instant('first_attempt_at'),
    // Start of the earliest attempt that the other side may have applied; null while there is none.
    maybeAppliedAt: instant('maybe_applied_at'),
    endpointId: integer('endpoint_id').notNull(),
    attempts: integer('attempts').notNull().default(0),
    // Attempts made before the last replay: the numbers go on, the budget starts again.
    base: integer('base').notNull().default(0),
    lane: smallint('lane').notNull(),
    lost: smallint('lost').notNull().default(0),
    token: uuid('token'),
    leasedBy: text('leased_by'),
    orderingKey: text('ordering_key'),
    blockedReason: text('blocked_reason'),
  },
  (t) => [
    index('queue_lane').on(t.endpointId, t.lane, t.nextAttemptAt),
    // Losses are rare: what has to be tried alone is found without a look at the rest.
    index('queue_lost').on(t.nextAttemptAt).where(sql`${t.lost} > 0`),
    index('queue_order').on(t.endpointId, t.orderingKey, t.deliveryId).where(sql`${t.orderingKey} is not null`),
    index('queue_parked')
      .on(t.endpointId, t.orderingKey, t.deliveryId)
      .where(sql`${t.nextAttemptAt} = 'infinity' and ${t.blockedReason} is null`),
    check('queue_lease', sql`num_nulls(${t.token}, ${t.leasedAt}, ${t.leasedBy}) in (0, 3)`),
    check('queue_lease_ends', sql`${t.token} is null or isfinite(${t.nextAttemptAt})`),
    check('queue_blocked', sql`${t.blockedReason} is null or ${t.nextAttemptAt} = 'infinity'`),
    check('queue_parked_has_key', sql`isfinite(${t.nextAttemptAt}) or ${t.orderingKey} is not null`),
    check('queue_counts', sql`${t.attempts} >= ${t.base} and ${t.base} >= 0 and ${t.lost} >= 0`),
  ],
)

/** One request on the wire, one row; written at settle, or by the claim that finds a lost one. */
export const attempt = outboxSchema.table(
  'attempt',
  {
    deliveryId: int8('delivery_id').notNull(),
    startedAt: instant('started_at').notNull(),
    finishedAt: instant('finished_at').notNull(),
    token: uuid('token').notNull(),
    number: integer('number').notNull(),
    lagMs: bigint('lag_ms', { mode: 'number' }),
    bytesOut: integer('bytes_out'),
    bytesIn: integer('bytes_in'),
    retryAfterMs: bigint('retry_after_ms', { mode: 'number' }),
    httpStatus: smallint('http_status'),
    requestSent: boolean('request_sent'),
    replayed: boolean('replayed').notNull().default(false),
    outcome: text('outcome').notNull(),
    verdict: text('verdict').notNull(),
    reason: text('reason'),
    phase: text('phase'),
    targetHost: text('target_host'),
    poller: text('poller').notNull(),
    excerpt: text('excerpt'),
  },
  (t) => [
    primaryKey({ columns: [t.deliveryId, t.number] }),
    check('attempt_number', sql`${t.number} > 0`),
    check('attempt_outcome', sql`${t.outcome} in ('delivered', 'not_applied', 'unknown', 'rejected')`),
    check('attempt_verdict', sql`${t.verdict} in ('delivered', 'retry', 'dead', 'block')`),
    check('attempt_delivered', sql`${t.outcome} = 'delivered' or ${t.reason} is not null`),
    check('attempt_sent', sql`${t.outcome} <> 'delivered' or ${t.requestSent} is true`),
    check('attempt_time', sql`${t.finishedAt} >= ${t.startedAt}`),
  ],
)

/** How a delivery ended. A delivery is in exactly one of queue and receipt; only receipts can be purged. */
export const receipt = outboxSchema.table(
  'receipt',
  {
    deliveryId: int8('delivery_id').primaryKey(),
    endedAt: instant('ended_at').notNull(),
    deleteAfter: instant('delete_after').notNull(),
    attempts: integer('attempts').notNull(),
    ending: text('ending').notNull(),
    certainty: text('certainty').notNull(),
    reason: text('reason'),
  },
  (t) => [
    index('receipt_delete_after').on(t.deleteAfter),
    // Dead ones are few and looked for; without this the view of them would read all of history.
    index('receipt_dead').on(t.endedAt).where(sql`${t.ending} = 'dead'`),
    // Lists go newest first, from a cursor on. By equality: without statistics an inequality looks like all of history.
    index('receipt_undelivered').on(t.ending, t.deliveryId).where(sql`${t.ending} <> 'delivered'`),
    index('receipt_unknown').on(t.deliveryId).where(sql`${t.certainty} = 'unknown'`),
    check('receipt_ending', sql`${t.ending} in ('delivered', 'dead', 'cancelled')`),
    check('receipt_certainty', sql`${t.certainty} in ('delivered', 'not_applied', 'unknown', 'rejected')`),
    check('receipt_delivered', sql`(${t.ending} = 'delivered') = (${t.certainty} = 'delivered')`),
    check('receipt_reason', sql`${t.ending} = 'delivered' or ${t.reason} is not null`),
    check('receipt_retention', sql`${t.deleteAfter} >= ${t.endedAt}`),
  ],
)

// The public views beside the deliveries: what needs a person, who works, where things go, what was done.
import { bigint, boolean, doublePrecision, integer, interval, json, smallint, text, uuid } from 'drizzle-orm/pg-core'
import { bytea, instant, int8, outboxSchema } from './schema.ts'

const count = (name: string) => bigint(name, { mode: 'number' })

/** What a person must look at. */
export const review = outboxSchema
  .view('review', {
    what: text('what').notNull(),
    since: instant('since').notNull(),
    endpoint: text('endpoint').notNull(),
    class: text('class').notNull(),
    key: text('key'),
    type: text('type'),
    state: text('state'),
    reason: text('reason'),
    certainty: text('certainty'),
    attempts: integer('attempts'),
    lastStatus: smallint('last_status'),
    correlationId: text('correlation_id'),
    deliveryId: int8('delivery_id'),
  })
  .existing()

/** Lanes that have open work. */
export const lanes = outboxSchema
  .view('lanes', {
    endpoint: text('endpoint').notNull(),
    class: text('class').notNull(),
    lane: smallint('lane').notNull(),
    priority: text('priority').notNull(),
    partition: smallint('partition').notNull(),
    firstDue: instant('first_due'),
    overdue: interval('overdue'),
  })
  .existing()

/** Who delivers, and who has fallen silent. */
export const pollers = outboxSchema
  .view('pollers', {
    name: text('name').notNull(),
    version: text('version').notNull(),
    startedAt: instant('started_at').notNull(),
    lastHeartbeat: instant('last_heartbeat').notNull(),
    heartbeatMs: integer('heartbeat_ms').notNull(),
    alive: boolean('alive').notNull(),
    declines: text('declines').array().notNull(),
  })
  .existing()

/** Endpoints with their settings; secrets only as references. */
export const endpoints = outboxSchema
  .view('endpoints', {
    endpoint: text('endpoint').notNull(),
    class: text('class').notNull(),
    state: text('state').notNull(),
    url: text('url').notNull(),
    region: text('region'),
    processor: text('processor'),
    secret: text('secret').notNull(),
    previousSecrets: json('previous_secrets').notNull(),
    authorization: text('authorization'),
    headers: json('headers'),
    timeoutMs: integer('timeout_ms'),
    retryDelayMs: integer('retry_delay_ms').notNull(),
    backoffFactor: doublePrecision('backoff_factor').notNull(),
    maxDelayMs: integer('max_delay_ms').notNull(),
    horizonMs: count('horizon_ms').notNull(),
    maxAttempts: integer('max_attempts'),
    keyWindowMs: count('key_window_ms').notNull(),
    concurrency: integer('concurrency').notNull(),
    partitions: smallint('partitions').notNull(),
    onDead: text('on_dead').notNull(),
    retentionDays: integer('retention_days').notNull(),
    captureResponse: boolean('capture_response').notNull(),
    allowInsecure: boolean('allow_insecure').notNull(),
    allowPrivate: boolean('allow_private').notNull(),
    pausedAt: instant('paused_at'),
    pausedReason: text('paused_reason'),
    backoffUntil: instant('backoff_until'),
    trippedUntil: instant('tripped_until'),
    unreviewed: text('unreviewed'),
    removedAt: instant('removed_at'),
    version: integer('version').notNull(),
    createdAt: instant('created_at').notNull(),
    updatedAt: instant('updated_at').notNull(),
    statusPolicy: json('status_policy'),
    on409: text('on_409').notNull(),
    onUnknown: text('on_unknown').notNull(),
    keyFormat: text('key_format').notNull(),
    failures: integer('failures').notNull(),
    failingSince: instant('failing_since'),
    rejections: integer('rejections').notNull(),
  })
  .existing()

/** Runs of the purge that deleted something. */
export const purges = outboxSchema
  .view('purges', {
    id: uuid('id').notNull(),
    startedAt: instant('started_at').notNull(),
    finishedAt: instant('finished_at').notNull(),
    batches: integer('batches').notNull(),
    deliveries: count('deliveries').notNull(),
    attempts: count('attempts').notNull(),
    tombstones: count('tombstones').notNull(),
    tombstonesExpired: count('tombstones_expired').notNull(),
    oldestDeleteAfter: instant('oldest_delete_after'),
    newestDeleteAfter: instant('newest_delete_after'),
  })
  .existing()

/** Who did what, when and why. */
export const operations = outboxSchema
  .view('operations', {
    id: int8('id').notNull(),
    at: instant('at').notNull(),
    who: text('who').notNull(),
    verb: text('verb').notNull(),
    subject: text('subject').notNull(),
    why: text('why'),
    detail: json('detail'),
  })
  .existing()

/** Runs of reconciliations of business rows against the ledger. */
export const reconciliations = outboxSchema
  .view('reconciliations', {
    id: int8('id').notNull(),
    name: text('name').notNull(),
    startedAt: instant('started_at').notNull(),
    finishedAt: instant('finished_at'),
    checked: count('checked').notNull(),
    missing: count('missing').notNull(),
    enqueued: count('enqueued').notNull(),
    overdue: count('overdue').notNull(),
    mismatched: count('mismatched').notNull(),
    error: text('error'),
  })
  .existing()

/** What is left of purged deliveries. */
export const tombstones = outboxSchema
  .view('tombstones', {
    keySha256: bytea('key_sha256').notNull(),
    payloadSha256: bytea('payload_sha256'),
    deliveryId: int8('delivery_id').notNull(),
    endedAt: instant('ended_at').notNull(),
    ending: text('ending').notNull(),
    certainty: text('certainty').notNull(),
    attempts: integer('attempts').notNull(),
    deletedAt: instant('deleted_at').notNull(),
    deleteAfter: instant('delete_after').notNull(),
  })
  .existing()

// The public views of deliveries and attempts, typed for drizzle. Their SQL and the comments on every column stand in the migrations.
import { bigint, boolean, integer, interval, smallint, text } from 'drizzle-orm/pg-core'
import { bytea, instant, int8, outboxSchema } from './schema.ts'

const delivery = () => ({
  id: int8('id').notNull(),
  key: text('key').notNull(),
  endpoint: text('endpoint').notNull(),
  class: text('class').notNull(),
  type: text('type').notNull(),
  orderingKey: text('ordering_key'),
  state: text('state').notNull(),
  discoveredAt: instant('discovered_at').notNull(),
  discoveredBy: text('discovered_by').notNull(),
  scheduledAt: instant('scheduled_at').notNull(),
  attempts: integer('attempts').notNull(),
  lastStatus: smallint('last_status'),
  lastOutcome: text('last_outcome'),
  nextAttemptAt: instant('next_attempt_at'),
  leaseUntil: instant('lease_until'),
  terminalReason: text('terminal_reason'),
  certainty: text('certainty').notNull(),
  payloadRef: text('payload_ref'),
  payloadSha256: bytea('payload_sha256'),
  payloadBytes: integer('payload_bytes'),
  erasedAt: instant('erased_at'),
  correlationId: text('correlation_id'),
  replayOf: int8('replay_of'),
  endedAt: instant('ended_at'),
  deleteAfter: instant('delete_after'),
  whyNotYet: text('why_not_yet'),
})

/** One row per delivery: where it stands and, while it is open, why it is not delivered yet. */
export const deliveries = outboxSchema.view('deliveries', delivery()).existing()

/** Deliveries that have not ended; reads no history. */
export const open = outboxSchema.view('open', delivery()).existing()

/** Deliveries that have ended; those not delivered are found without reading the others. */
export const ended = outboxSchema.view('ended', delivery()).existing()

/** Deliveries that may have been applied, open or ended; a first attempt still in flight is not among them. */
export const unknown = outboxSchema.view('unknown', delivery()).existing()
/** One row per attempt: one request on the wire, or one that was lost. */
export const attempts = outboxSchema
  .view('attempts', {
    key: text('key').notNull(),
    endpoint: text('endpoint').notNull(),
    class: text('class').notNull(),
    type: text('type').notNull(),
    number: integer('number').notNull(),
    outcome: text('outcome').notNull(),
    verdict: text('verdict').notNull(),
    reason: text('reason'),
    httpStatus: smallint('http_status'),
    phase: text('phase'),
    requestSent: boolean('request_sent'),
    targetHost: text('target_host'),
    startedAt: instant('started_at').notNull(),
    finishedAt: instant('finished_at').notNull(),
    tookMs: bigint('took_ms', { mode: 'number' }).notNull(),
    lagMs: bigint('lag_ms', { mode: 'number' }),
    bytesOut: integer('bytes_out'),
    bytesIn: integer('bytes_in'),
    retryAfterMs: bigint('retry_after_ms', { mode: 'number' }),
    replayed: boolean('replayed').notNull(),
    poller: text('poller').notNull(),
    excerpt: text('excerpt'),
    correlationId: text('correlation_id'),
    deliveryId: int8('delivery_id').notNull(),
  })
  .existing()

/** Open work per endpoint. */
export const backlog = outboxSchema
  .view('backlog', {
    endpoint: text('endpoint').notNull(),
    class: text('class').notNull(),
    due: bigint('due', { mode: 'number' }).notNull(),
    leased: bigint('leased', { mode: 'number' }).notNull(),
    scheduled: bigint('scheduled', { mode: 'number' }).notNull(),
    parked: bigint('parked', { mode: 'number' }).notNull(),
    blocked: bigint('blocked', { mode: 'number' }).notNull(),
    oldestDueAge: interval('oldest_due_age'),
  })
  .existing()

/** Deliveries that finally failed, and whether they may have been applied all the same. */
export const dead = outboxSchema
  .view('dead', {
    key: text('key').notNull(),
    endpoint: text('endpoint').notNull(),
    class: text('class').notNull(),
    type: text('type').notNull(),
    endedAt: instant('ended_at').notNull(),
    attempts: integer('attempts').notNull(),
    reason: text('reason').notNull(),
    certainty: text('certainty').notNull(),
    maybeApplied: boolean('maybe_applied').notNull(),
    lastStatus: smallint('last_status'),
    correlationId: text('correlation_id'),
    deleteAfter: instant('delete_after').notNull(),
    deliveryId: int8('delivery_id').notNull(),
  })
  .existing()

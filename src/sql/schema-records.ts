// The tables beside the deliveries: who is alive, who did what, what was deleted.
import { sql } from 'drizzle-orm'
import { bigint, boolean, check, index, integer, json, text, uuid } from 'drizzle-orm/pg-core'
import { bytea, clock, instant, int8, outboxSchema } from './schema.ts'

/** Live pollers: the heartbeat is written by the claiming loop itself. */
export const poller = outboxSchema.table('poller', {
  name: text('name').primaryKey(),
  startedAt: instant('started_at').notNull().default(clock),
  beatAt: instant('beat_at').notNull().default(clock),
  heartbeatMs: integer('heartbeat_ms').notNull(),
  version: text('version').notNull(),
  // Endpoints that it cannot send to: the others share their lanes.
  declines: integer('declines').array().notNull().default([]),
})

/** Who did what, when and why. */
export const operation = outboxSchema.table(
  'operation',
  {
    id: int8('id').generatedAlwaysAsIdentity().primaryKey(),
    at: instant('at').notNull().default(clock),
    who: text('who').notNull(),
    verb: text('verb').notNull(),
    subject: text('subject').notNull(),
    why: text('why'),
    detail: json('detail'),
  },
  (t) => [index('operation_subject').on(t.subject, t.id)],
)

/** One row: the major version of the schema. Within a major, migrations only add, so that older pollers go on beside them. */
export const version = outboxSchema.table(
  'version',
  {
    only: boolean('only').primaryKey().default(true),
    major: integer('major').notNull(),
    since: instant('since').notNull().default(clock),
  },
  (t) => [check('version_only', sql`${t.only}`)],
)

/** One run of a reconciliation of business rows against the ledger. */
export const reconciliation = outboxSchema.table('reconciliation', {
  id: int8('id').generatedAlwaysAsIdentity().primaryKey(),
  name: text('name').notNull(),
  startedAt: instant('started_at').notNull().default(clock),
  finishedAt: instant('finished_at'),
  checked: bigint('checked', { mode: 'number' }).notNull().default(0),
  missing: bigint('missing', { mode: 'number' }).notNull().default(0),
  enqueued: bigint('enqueued', { mode: 'number' }).notNull().default(0),
  overdue: bigint('overdue', { mode: 'number' }).notNull().default(0),
  mismatched: bigint('mismatched', { mode: 'number' }).notNull().default(0),
  error: text('error'),
})

/** One run of the purge: its batches are added up in the very statements that delete. */
export const purgeRun = outboxSchema.table('purge_run', {
  id: uuid('id').primaryKey(),
  startedAt: instant('started_at').notNull().default(clock),
  finishedAt: instant('finished_at').notNull().default(clock),
  batches: integer('batches').notNull().default(1),
  deliveries: bigint('deliveries', { mode: 'number' }).notNull(),
  attempts: bigint('attempts', { mode: 'number' }).notNull(),
  tombstones: bigint('tombstones', { mode: 'number' }).notNull(),
  tombstonesExpired: bigint('tombstones_expired', { mode: 'number' }).notNull(),
  oldestDeleteAfter: instant('oldest_delete_after'),
  newestDeleteAfter: instant('newest_delete_after'),
})

/** What stays of a purged delivery, so that its key still deduplicates until `delete_after`. */
export const tombstone = outboxSchema.table(
  'tombstone',
  {
    keySha256: bytea('key_sha256').primaryKey(),
    payloadSha256: bytea('payload_sha256'),
    deliveryId: int8('delivery_id').notNull(),
    endedAt: instant('ended_at').notNull(),
    deletedAt: instant('deleted_at').notNull().default(clock),
    deleteAfter: instant('delete_after').notNull(),
    attempts: integer('attempts').notNull(),
    ending: text('ending').notNull(),
    certainty: text('certainty').notNull(),
  },
  (t) => [index('tombstone_delete_after').on(t.deleteAfter)],
)

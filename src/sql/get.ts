// One delivery with its attempts and what people did to it, in one statement, so that the parts fit each other.
import type { Executor } from './executor.ts'
import { iso } from './executor.ts'
import { type Delivery, deliveryColumns } from './list.ts'

/** One request on the wire, or one that was lost with its poller. */
export interface Attempt {
  readonly number: number
  readonly startedAt: string
  readonly finishedAt: string
  readonly tookMs: number
  /** Start of the lease after the time that was scheduled. */
  readonly lagMs: number | null
  readonly outcome: string
  readonly verdict: string
  readonly reason: string | null
  readonly httpStatus: number | null
  readonly phase: string | null
  readonly requestSent: boolean | null
  readonly targetHost: string | null
  readonly bytesOut: number | null
  readonly bytesIn: number | null
  readonly retryAfterMs: number | null
  readonly replayed: boolean
  readonly poller: string
  readonly excerpt: string | null
}

/** What a person did. */
export interface Operation {
  readonly at: string
  readonly who: string
  readonly verb: string
  readonly why: string | null
  readonly detail: unknown
}

export interface Story {
  readonly delivery: Delivery
  readonly attempts: readonly Attempt[]
  readonly operations: readonly Operation[]
}

// An endpoint may be named like a key; what was done to it is not this delivery's story.
const getText = `
select ${deliveryColumns},
  (select coalesce(json_agg(json_build_object('number', a.number, 'startedAt', ${iso('a.started_at')}, 'finishedAt', ${iso('a.finished_at')},
     'tookMs', a.took_ms, 'lagMs', a.lag_ms, 'outcome', a.outcome, 'verdict', a.verdict, 'reason', a.reason, 'httpStatus', a.http_status,
     'phase', a.phase, 'requestSent', a.request_sent, 'targetHost', a.target_host, 'bytesOut', a.bytes_out, 'bytesIn', a.bytes_in,
     'retryAfterMs', a.retry_after_ms, 'replayed', a.replayed, 'poller', a.poller, 'excerpt', a.excerpt) order by a.number), '[]')::text
   from outbox.attempts a where a.delivery_id = v.id) as "attemptRows",
  (select coalesce(json_agg(json_build_object('at', ${iso('o.at')}, 'who', o.who, 'verb', o.verb, 'why', o.why, 'detail', o.detail) order by o.id), '[]')::text
   from outbox.operations o where o.subject = v.key and o.verb not like 'endpoint %') as "operationRows"
from outbox.deliveries v where v.key = $1`

/** Null: there is no delivery with this key (any more). */
export async function get(db: Executor, key: string): Promise<Story | null> {
  const [row] = await db.run<Delivery & { attemptRows: string; operationRows: string }>(getText, [key])
  if (row === undefined) return null
  const { attemptRows, operationRows, ...delivery } = row
  return { delivery, attempts: JSON.parse(attemptRows), operations: JSON.parse(operationRows) }
}

/** What is left of a purged delivery. */
export interface Tombstone {
  readonly endedAt: string
  readonly ending: string
  readonly certainty: string
  readonly attempts: number
  readonly deletedAt: string
  readonly deleteAfter: string
}

const tombstoneText = `
select ${iso('t.ended_at')} as "endedAt", t.ending, t.certainty, t.attempts, ${iso('t.deleted_at')} as "deletedAt",
       ${iso('t.delete_after')} as "deleteAfter"
from outbox.tombstones t where t.key_sha256 = sha256(convert_to($1::text, 'UTF8'))`

export async function tombstoneOf(db: Executor, key: string): Promise<Tombstone | null> {
  const [row] = await db.run<Tombstone>(tombstoneText, [key])
  return row ?? null
}

// Sweep and purge: any poller does them in its own rhythm, no leader; each step is one bounded, guarded statement.
import { randomUUID } from 'node:crypto'
import { discover } from './sql/discover.ts'
import type { Executor } from './sql/executor.ts'
import { forgetDead } from './sql/heartbeat.ts'
import { promote } from './sql/promote.ts'
import { purge } from './sql/purge.ts'

/** A page stays below 10 ms. */
export const KEYS_PER_PAGE = 250
const LANES_PER_PAGE = 1_000
/** Receipts of one batch: one statement of a few milliseconds. */
export const PURGE_BATCH = 200

/** Batches of one purge run; what is left goes with the next run, so that deliveries are never kept waiting for long. */
const PURGE_BATCHES = 50

/** A due row that is older than this has been seen by nobody. */
const OVERDUE_MS = 60_000

export interface Swept {
  /** Parked deliveries that had become the head of their ordering key unnoticed. */
  readonly promoted: number
  /** Rows of pollers removed that have been dead for a day. */
  readonly forgotten: number
  /** Lanes whose first row has been due for more than a minute: too few pollers, or none. */
  readonly overdueLanes: number
}

/** Look after what nobody looks after. Safe to run anywhere, any number of times at once. */
export async function sweepOnce(db: Executor): Promise<Swept> {
  let promoted = 0
  for (let endpointId = 0, orderingKey = ''; ; ) {
    const page = await promote(db, { endpointId, orderingKey, keys: KEYS_PER_PAGE })
    promoted += page.promoted
    if (page.keys < KEYS_PER_PAGE) break
    endpointId = page.last_endpoint_id ?? 0
    orderingKey = page.last_ordering_key ?? ''
  }
  return { promoted, forgotten: await forgetDead(db), overdueLanes: await overdueLanes(db) }
}

async function overdueLanes(db: Executor): Promise<number> {
  let overdue = 0
  for (let afterEndpointId = 0, afterLane = -1; ; ) {
    const page = await discover(db, { afterEndpointId, afterLane, limit: LANES_PER_PAGE })
    overdue += page.filter((lane) => lane.due_in_ms !== null && lane.due_in_ms < -OVERDUE_MS).length
    const last = page.at(-1)
    if (last === undefined || page.length < LANES_PER_PAGE) return overdue
    afterEndpointId = last.endpoint_id
    afterLane = last.lane
  }
}

export interface PurgeRun {
  readonly deliveries: number
  readonly attempts: number
  readonly batches: number
  readonly tombstonesExpired: number
}

/** One run: at most 50 batches of 200 receipts past their `delete_after`, each its own transaction, recorded as one row. */
export async function purgeOnce(db: Executor, { tombstoneDays }: { tombstoneDays: number }): Promise<PurgeRun> {
  const runId = randomUUID()
  const run = { deliveries: 0, attempts: 0, batches: 0, tombstonesExpired: 0 }
  while (run.batches < PURGE_BATCHES) {
    const batch = await purge(db, { limit: PURGE_BATCH, tombstoneDays, runId })
    if (batch.deliveries + batch.tombstonesExpired === 0) break
    run.batches++
    run.deliveries += batch.deliveries
    run.attempts += batch.attempts
    run.tombstonesExpired += batch.tombstonesExpired
    if (batch.deliveries < PURGE_BATCH && batch.tombstonesExpired < PURGE_BATCH) break
  }
  return run
}

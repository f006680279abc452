// How everything stands, at one moment: open work by endpoint, who works, what waits for a person.
import { type Executor, iso } from './executor.ts'

export interface EndpointStatus {
  readonly endpoint: string
  readonly class: string
  /** open, or what stops it, in words. */
  readonly state: string
  readonly due: number
  readonly leased: number
  readonly scheduled: number
  readonly parked: number
  readonly blocked: number
  readonly oldestDueMs: number | null
}

export interface PollerStatus {
  readonly name: string
  readonly version: string
  readonly startedAt: string
  readonly sinceHeartbeatMs: number
  readonly alive: boolean
  /** Endpoints that it cannot send to. */
  readonly declines: readonly string[]
}

/** Counted up to a limit: `more` says that there are more than `count`. */
export interface Count {
  readonly count: number
  readonly more: boolean
}

interface PurgeStatus {
  readonly finishedAt: string
  readonly deliveries: number
}

export interface Status {
  readonly at: string
  readonly endpoints: readonly EndpointStatus[]
  readonly pollers: readonly PollerStatus[]
  readonly dead: Count
  /** May have been applied, open ones included. */
  readonly unknown: Count
  /** What a person must look at, dead ones included: see the view `review`. */
  readonly review: Count & { readonly kinds: Readonly<Record<string, number>> }
  readonly lastPurge: PurgeStatus | null
}

/** Nobody needs to know whether 20,000 or 21,000 are dead, and counting them all would read them all. */
const LIMIT = 1_000

const bounded = (view: string) =>
  `(select count(*)::int from (select from outbox.${view} limit ${LIMIT + 1}) n) as ${view}`

const ms = (interval: string) => `floor(extract(epoch from ${interval}) * 1000)`

const text = `
select ${iso('statement_timestamp()')} as at, ${bounded('dead')}, ${bounded('unknown')},
  (select coalesce(json_object_agg(k.what, k.n order by k.what), '{}')::text
   from (select r.what, count(*)::int as n from (select r.what from outbox.review r limit ${LIMIT + 1}) r group by r.what) k) as review,
  (select coalesce(json_agg(json_build_object('endpoint', e.endpoint, 'class', e.class, 'state', e.state, 'due', b.due, 'leased', b.leased,
     'scheduled', b.scheduled, 'parked', b.parked, 'blocked', b.blocked, 'oldestDueMs', ${ms('b.oldest_due_age')}) order by e.endpoint), '[]')::text
   from outbox.endpoints e join outbox.backlog b on b.endpoint = e.endpoint) as endpoints,
  (select coalesce(json_agg(json_build_object('name', p.name, 'version', p.version, 'startedAt', ${iso('p.started_at')},
     'sinceHeartbeatMs', greatest(0, ${ms('statement_timestamp() - p.last_heartbeat')}), 'alive', p.alive, 'declines', p.declines) order by p.alive desc, p.name), '[]')::text
   from outbox.pollers p) as pollers,
  (select json_build_object('finishedAt', ${iso('p.finished_at')}, 'deliveries', p.deliveries)::text
   from outbox.purges p order by p.finished_at desc limit 1) as "lastPurge"`

interface Raw {
  readonly at: string
  readonly endpoints: string
  readonly pollers: string
  readonly dead: number
  readonly unknown: number
  readonly review: string
  readonly lastPurge: string | null
}

export async function status(db: Executor): Promise<Status> {
  const [row] = (await db.run<Raw>(text, [])) as [Raw]
  const kinds: Record<string, number> = JSON.parse(row.review)
  const counted = (n: number): Count => ({ count: Math.min(n, LIMIT), more: n > LIMIT })
  return {
    at: row.at,
    endpoints: JSON.parse(row.endpoints),
    pollers: JSON.parse(row.pollers),
    dead: counted(row.dead),
    unknown: counted(row.unknown),
    review: { ...counted(Object.values(kinds).reduce((a, b) => a + b, 0)), kinds },
    lastPurge: JSON.parse(row.lastPurge ?? 'null'),
  }
}

// What was enqueued, with its payload, for people's own tests: the views show no payloads.
import { type Executor, iso } from './executor.ts'

export interface EnqueuedRow {
  readonly key: string
  readonly endpoint: string
  readonly type: string
  readonly payloadText: string | null
  readonly payloadRef: string | null
  readonly orderingKey: string | null
  readonly scheduledAt: string
  readonly correlationId: string | null
}

// Written here and by nobody else: the row's transaction is still in progress, and yet the row is seen. A savepoint has an
// id of its own, later than that of its transaction, so that the id alone does not tell; the upper half of a row's id is ours.
const mine = `
  case when x.age >= 0 and x.age < 2147483648 then pg_xact_status((me.id + x.age)::text::xid8) = 'in progress' end`

const text = `
select d.key, e.name as endpoint, d.type, d.payload::text as "payloadText", d.payload_ref as "payloadRef",
       d.ordering_key as "orderingKey", ${iso('d.scheduled_at')} as "scheduledAt", d.correlation_id as "correlationId"
from outbox.delivery d
join outbox.endpoint e on e.id = d.endpoint_id
cross join (select pg_current_xact_id_if_assigned()::text::bigint as id) me
cross join lateral (select (d.xmin::text::bigint - me.id) & 4294967295 as age) x
where ($1::text is null or d.type = $1::text) and ($2::text is null or e.name = $2::text) and ($3::text is null or d.key = $3::text)
  and ($4::text::boolean is false or ${mine})
order by d.id`

export interface EnqueuedFilter {
  readonly type: string | null
  readonly endpoint: string | null
  readonly key: string | null
  /** Only what the current transaction has written. */
  readonly mine: boolean
}

/** In the order in which they were enqueued. Reads the table itself, which needs a right of its own: its owner has it. */
export function enqueued(db: Executor, { type, endpoint, key, mine }: EnqueuedFilter): Promise<EnqueuedRow[]> {
  return db.run<EnqueuedRow>(text, [type, endpoint, key, String(mine)])
}

/** leased → leased */
// Write down what the payload of a delivery by reference is, before it is sent for the first time: no later attempt sends another.
import { arrayLiteral, type Executor } from './executor.ts'

// Only under its lease, as everything that an attempt writes. Where somebody was faster, theirs stays.
const text = `
with mine as materialized (
  select p.*
  from unnest($1::text::bigint[], $2::text::uuid[], $3::text::text[], $4::text::int[]) as p(delivery_id, token, sha256, bytes)
  cross join lateral (
    select q.delivery_id from outbox.queue q where q.delivery_id = p.delivery_id and q.token = p.token limit 1) q
), by_id as materialized (
  select jsonb_object_agg(m.delivery_id::text, jsonb_build_array(m.sha256, m.bytes)) as by_id from mine m
)
update outbox.delivery d
set payload_sha256 = coalesce(d.payload_sha256, decode((select by_id from by_id) -> d.id::text ->> 0, 'hex')),
    payload_bytes = coalesce(d.payload_bytes, ((select by_id from by_id) -> d.id::text ->> 1)::int)
where d.id = any (array(select m.delivery_id from mine m order by m.delivery_id)) and d.payload_ref is not null
returning d.id::text as delivery_id, encode(d.payload_sha256, 'hex') as sha256`

export interface Pin {
  readonly deliveryId: string
  readonly token: string
  /** Hexadecimal. */
  readonly sha256: string
  readonly bytes: number
}

/** What is pinned now, by delivery; one that is missing is no longer leased under this token, or its payload was erased. */
export async function pin(db: Executor, pins: readonly Pin[]): Promise<ReadonlyMap<string, string>> {
  const rows = await db.run<{ delivery_id: string; sha256: string }>(text, [
    arrayLiteral(pins.map((p) => p.deliveryId)),
    arrayLiteral(pins.map((p) => p.token)),
    arrayLiteral(pins.map((p) => p.sha256)),
    arrayLiteral(pins.map((p) => p.bytes)),
  ])
  return new Map(rows.map((row) => [row.delivery_id, row.sha256]))
}

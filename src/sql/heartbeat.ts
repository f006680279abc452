// Who is alive: each poller writes its own row from its claiming loop and reads those of the others.
import { arrayLiteral, type Executor } from './executor.ts'

const beatText = `
with me as (
  insert into outbox.poller as p (name, heartbeat_ms, version, declines) values ($1, $2::text::int, $3, $4::text::int[])
  on conflict (name) do update set beat_at = clock_timestamp(), heartbeat_ms = excluded.heartbeat_ms, version = excluded.version,
    declines = excluded.declines
  returning p.name, p.declines
)
select p.name, array_to_json(p.declines)::text as declines from outbox.poller p
where p.beat_at > statement_timestamp() - 3 * p.heartbeat_ms * interval '1 millisecond' and p.name <> $1
union all select me.name, array_to_json(me.declines)::text from me`

/** A poller that is alive. */
export interface Live {
  readonly name: string
  /** Endpoints that it cannot send to, by their ids. */
  readonly declines: readonly number[]
}

export interface Heartbeat extends Live {
  readonly heartbeatMs: number
  readonly version: string
}

/** Write a heartbeat; returns all live pollers, this one included. Dead: three heartbeats missed. */
export async function beat(db: Executor, { name, heartbeatMs, version, declines }: Heartbeat): Promise<Live[]> {
  const values = [name, String(heartbeatMs), version, arrayLiteral(declines)]
  const rows = await db.run<{ name: string; declines: string }>(beatText, values)
  return rows.map((row) => ({ name: row.name, declines: JSON.parse(row.declines) }))
}

/** Leave: the others take over the lanes with their next heartbeat instead of after three missed ones. */
export async function leave(db: Executor, name: string): Promise<void> {
  await db.run('delete from outbox.poller where name = $1', [name])
}

const forgetText = `
with dead as materialized (
  select p.name from outbox.poller p
  where p.beat_at < statement_timestamp() - greatest(interval '1 day', 100 * p.heartbeat_ms * interval '1 millisecond')
  for update skip locked
), gone as (
  delete from outbox.poller p where p.name = any (array(select d.name from dead d))
  returning p.name
)
select count(*)::int as n from gone`

/** Remove the rows of pollers that have been dead for a day; one that somebody has locked waits for the next sweep, not the sweep for it. */
export async function forgetDead(db: Executor): Promise<number> {
  const [row] = await db.run<{ n: number }>(forgetText, [])
  return row?.n ?? 0
}

// Who did what, when and why.
import { type Executor, iso } from './executor.ts'
import type { Operation } from './get.ts'

const lastText = `
select ${iso('o.at')} as at, o.who, o.verb, o.why, o.detail::text as detail
from outbox.operation o
where o.subject = $1 and o.verb like 'endpoint %'
order by o.id desc limit $2::text::int`

/** The last operations on this endpoint, latest first. */
export async function operationsOn(db: Executor, endpoint: string, { limit }: { limit: number }): Promise<Operation[]> {
  const rows = await db.run<Omit<Operation, 'detail'> & { detail: string | null }>(lastText, [endpoint, String(limit)])
  return rows.map((row) => ({ ...row, detail: JSON.parse(row.detail ?? 'null') }))
}

const recordText = `
insert into outbox.operation (who, verb, subject, why, detail) values ($1, $2, $3, $4, $5::text::json)`

/** Record what was not itself a statement. */
export async function recordOperation(
  db: Executor,
  { who, verb, subject, why, detail }: Omit<Operation, 'at'> & { readonly subject: string },
): Promise<void> {
  await db.run(recordText, [who, verb, subject, why, JSON.stringify(detail)])
}

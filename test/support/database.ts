// A database of its own for each test file, cloned from a migrated template.
import { randomUUID } from 'node:crypto'
import { after } from 'node:test'
import postgres from 'postgres'
import type { Executor, Row } from '../../src/sql/executor.ts'

/** Set by scripts/test.ts: the server, and the name of the template database. */
const SERVER = process.env.OUTLEDGER_TEST_SERVER ?? ''
const TEMPLATE = process.env.OUTLEDGER_TEST_TEMPLATE ?? ''

export interface TestDatabase extends Executor {
  readonly url: string
  readonly sql: postgres.Sql
  /** Plain text, plain values. */
  query<T = Row>(text: string, ...values: (string | number | null)[]): Promise<T[]>
  /** Move every instant of a delivery's queue row (and those of its receipt) into the past: time passes without waiting. */
  age(key: string, interval: string): Promise<void>
}

export const urlOf = (database: string): string => Object.assign(new URL(SERVER), { pathname: `/${database}` }).href

/** A fresh database; `template: null` gives an empty one. It is left to the runner: to drop one costs more than to make one. */
export async function testDatabase({ template = TEMPLATE }: { template?: string | null } = {}): Promise<TestDatabase> {
  const name = `${TEMPLATE}_${randomUUID().replaceAll('-', '').slice(0, 16)}`
  const admin = postgres(SERVER, { max: 1, onnotice: () => {} })
  await admin.unsafe(
    template === null
      ? `create database ${name} template template0 encoding 'UTF8'`
      : `create database ${name} template ${template} strategy wal_log`,
  )
  await admin.end({ timeout: 1 })
  const sql = postgres(urlOf(name), { max: 10, fetch_types: false, onnotice: () => {} })
  after(() => sql.end({ timeout: 1 }))
  const query = async <T = Row>(text: string, ...values: (string | number | null)[]) =>
    [...(await sql.unsafe(text, values))] as T[]
  return {
    run: (text, values) => query(text, ...values),
    url: urlOf(name),
    sql,
    query,
    async age(key, interval) {
      const moved = await query(
        `with d as (select id from outbox.delivery where key = $1), q as (
           update outbox.queue set next_attempt_at = next_attempt_at - $2::text::interval, leased_at = leased_at - $2::text::interval,
             ready_at = ready_at - $2::text::interval, first_attempt_at = first_attempt_at - $2::text::interval,
             maybe_applied_at = maybe_applied_at - $2::text::interval
           where delivery_id = (select id from d) returning 1), r as (
           update outbox.receipt set ended_at = ended_at - $2::text::interval, delete_after = delete_after - $2::text::interval
           where delivery_id = (select id from d) returning 1)
         select 1 from q union all select 1 from r`,
        key,
        interval,
      )
      if (moved.length !== 1) throw new Error(`no delivery with key ${key} to age`)
    },
  }
}

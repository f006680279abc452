// The payment app: a business row and its event in one transaction, on either client, a tenth of them rolled back.
import { setTimeout as pause } from 'node:timers/promises'
import { json, pgSchema, text } from 'drizzle-orm/pg-core'
import { drizzle } from 'drizzle-orm/postgres-js'
import postgres from 'postgres'
import { type Handle, outbox, putEndpoint } from '../../src/index.ts'
import type { Table, Transaction } from './input.ts'
import { together } from './together.ts'

/** Transactions at once. */
const WORKERS = 6

/** One begins so often, so that there is something to watch. */
const INTERVAL_MS = 10

const ENDPOINTS: Readonly<Record<Table, { name: string; class: string }>> = {
  payment: { name: 'ledger', class: 'payment-ledger' },
  eligibility: { name: 'clinic', class: 'clinic' },
  webhook: { name: 'partner', class: 'partner' },
}

const shop = pgSchema('shop')
const columns = () => ({
  key: text('key').primaryKey(),
  type: text('type').notNull(),
  detail: json('detail').notNull(),
})
const TABLES = {
  payment: shop.table('payment', columns()),
  eligibility: shop.table('eligibility', columns()),
  webhook: shop.table('webhook', columns()),
}

/** Tables of the app, beside the outbox in the same database; `intent` is written before each transaction, outside it. */
const DDL = `
create schema shop;
create table shop.intent (key text primary key, at timestamptz not null default clock_timestamp());
${Object.keys(TABLES)
  .map((name) => `create table shop.${name} (key text primary key, type text not null, detail json not null);`)
  .join('\n')}
create view shop.business as ${Object.keys(TABLES)
  .map((name) => `select key from shop.${name}`)
  .join(' union all ')};`

/** Create the app's tables, and an endpoint for each. */
export async function prepareApp(
  url: string,
  endpoint: { url: string; secret: string; retryDelayMs: number },
): Promise<void> {
  const sql = postgres(url, { max: 1, onnotice: () => {} })
  try {
    await sql.unsafe(DDL)
    for (const { name, class: kind } of Object.values(ENDPOINTS)) {
      const settings = { ...endpoint, url: `${endpoint.url}/${name}` }
      await putEndpoint(sql, { name, class: kind, allowInsecure: true, allowPrivate: true, ...settings })
    }
  } finally {
    await sql.end({ timeout: 1 })
  }
}

/** Run all transactions; ends early when the signal aborts. */
export async function runApp(
  todo: readonly Transaction[],
  { url, signal }: { url: string; signal: AbortSignal },
): Promise<void> {
  const journal = postgres(url, { max: 2 })
  const plain = postgres(url, { max: WORKERS / 2 })
  // drizzle changes the client it is given, so it has one to itself.
  const forDrizzle = postgres(url, { max: WORKERS / 2 })
  const db = drizzle(forDrizzle)

  const withDrizzle = (one: Transaction) =>
    db.transaction(async (tx) => {
      await tx.insert(TABLES[one.table]).values({ key: one.key, type: one.type, detail: one.payload })
      await enqueue(tx, one)
    })
  const withPostgres = (one: Transaction) =>
    plain.begin(async (tx) => {
      const row = { key: one.key, type: one.type, detail: plain.json(one.payload as postgres.JSONValue) }
      await tx`insert into ${tx('shop')}.${tx(one.table)} ${tx(row)}`
      await enqueue(tx, one)
    })

  const startedAt = performance.now()
  const queue = todo.entries()
  const worker = async (signal: AbortSignal) => {
    for (const [i, one] of queue) {
      const early = startedAt + i * INTERVAL_MS - performance.now()
      if (early > 0) await pause(early, undefined, { signal })
      signal.throwIfAborted()
      await journal`insert into shop.intent (key) values (${one.key})`
      await (i % 2 === 0 ? withDrizzle(one) : withPostgres(one)).catch(changedMind)
    }
  }
  try {
    await together(signal, (signal) => Array.from({ length: WORKERS }, () => worker(signal)))
  } catch (error) {
    if (!signal.aborted) throw error
  } finally {
    await Promise.all([journal, plain, forDrizzle].map((client) => client.end({ timeout: 1 })))
  }
}

class ChangedMind extends Error {}

async function enqueue(tx: Handle, { table, key, type, payload, rollsBack }: Transaction): Promise<void> {
  await outbox.enqueue(tx, { key, endpoint: ENDPOINTS[table].name, type, payload })
  if (rollsBack) throw new ChangedMind()
}

function changedMind(error: unknown): void {
  if (!(error instanceof ChangedMind)) throw error
}

// The clients an app may bring, each with its own way to begin, to nest and to end a transaction.

import { drizzle as drizzlePg } from 'drizzle-orm/node-postgres'
import { drizzle } from 'drizzle-orm/postgres-js'
import { CamelCasePlugin, Kysely, PostgresDialect } from 'kysely'
import pg from 'pg'
import postgres from 'postgres'
import type { Handle } from '../../src/index.ts'
import { prismaShape } from './prisma-shape.ts'

export type Isolation = 'read committed' | 'repeatable read'

/** One client, seen from an app. */
export interface Subject {
  readonly name: string
  /** The twins of its transaction: what an app passes by mistake. */
  readonly roots: Readonly<Record<string, Handle>>
  /** Only the server can tell its twin. */
  readonly alike?: true
  /** Commits when `work` resolves, rolls back when it rejects. */
  begin<T>(work: (tx: Handle) => Promise<T>, isolation?: Isolation): Promise<T>
  /** The client's own savepoint, or its own statement for it. */
  savepoint<T>(tx: Handle, work: (inner: Handle) => Promise<T>): Promise<T>
  /** The SQLSTATE of an error of the database that comes through as it is. */
  stateOf?(error: Error): unknown
  close(): Promise<unknown>
}

const open = (url: string, options: postgres.Options<Record<string, never>> = {}) =>
  postgres(url, { max: 2, fetch_types: false, onnotice: () => {}, ...options })

export function postgresSubject(
  url: string,
  name: string,
  options: postgres.Options<Record<string, never>> = {},
): Subject {
  const sql = open(url, options)
  return {
    name,
    roots: { sql },
    begin: (work, isolation = 'read committed') => sql.begin(`isolation level ${isolation}`, work) as never,
    savepoint: (tx, work) => (tx as postgres.TransactionSql).savepoint(work) as never,
    close: () => sql.end({ timeout: 1 }),
  }
}

export function drizzleSubject(url: string): Subject {
  const sql = open(url)
  const db = drizzle(sql)
  return {
    name: 'drizzle over postgres.js',
    roots: { db },
    begin: (work, isolationLevel = 'read committed') => db.transaction(work, { isolationLevel }),
    savepoint: (tx, work) => (tx as typeof db).transaction(work),
    close: () => sql.end({ timeout: 1 }),
  }
}

export function drizzlePgSubject(url: string): Subject {
  const pool = new pg.Pool({ connectionString: url, max: 2 })
  const db = drizzlePg(pool)
  return {
    name: 'drizzle over node-postgres',
    roots: { db },
    begin: (work, isolationLevel = 'read committed') => db.transaction(work, { isolationLevel }),
    savepoint: (tx, work) => (tx as typeof db).transaction(work),
    close: () => pool.end(),
  }
}

interface Queried {
  query(text: string): Promise<unknown>
}

/** BEGIN, COMMIT and ROLLBACK as an app types them; savepoints likewise. */
const byHand = (pool: pg.Pool, handleOf: (client: pg.PoolClient) => Handle): Pick<Subject, 'begin' | 'savepoint'> => {
  const clients = new WeakMap<Handle, Queried>()
  const between = async <T>(on: Queried, [first, last, undo]: [string, string, string], work: () => Promise<T>) => {
    await on.query(first)
    try {
      const result = await work()
      await on.query(last)
      return result
    } catch (error) {
      await on.query(undo)
      throw error
    }
  }
  return {
    async begin(work, isolation = 'read committed') {
      const client = await pool.connect()
      const handle = handleOf(client)
      clients.set(handle, client)
      try {
        return await between(client, [`begin isolation level ${isolation}`, 'commit', 'rollback'], () => work(handle))
      } finally {
        client.release()
      }
    },
    savepoint: (tx, work) =>
      between(
        clients.get(tx) as Queried,
        ['savepoint mine', 'release savepoint mine', 'rollback to savepoint mine'],
        () => work(tx),
      ),
  }
}

export async function pgSubject(url: string): Promise<Subject> {
  // With a parser that leaves every value as text, as apps do for int8 and dates.
  const pool = new pg.Pool({ connectionString: url, max: 2, types: { getTypeParser: () => String } })
  const alone = new pg.Client({ connectionString: url })
  await alone.connect()
  return {
    name: 'node-postgres',
    roots: { pool, 'a client that has not begun': alone },
    ...byHand(pool, (client) => client),
    close: () => Promise.all([pool.end(), alone.end()]),
  }
}

/** Versions before 8.17 do not know whether they are in a transaction. */
const older = <C extends pg.ClientBase>(client: C): C =>
  new Proxy(client, {
    get: (target, name) => {
      const value = name === 'getTransactionStatus' ? undefined : Reflect.get(target, name)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })

export async function olderPgSubject(url: string): Promise<Subject> {
  const pool = new pg.Pool({ connectionString: url, max: 2 })
  const alone = new pg.Client({ connectionString: url })
  await alone.connect()
  return {
    name: 'node-postgres without getTransactionStatus',
    roots: { 'a client that has not begun': older(alone) },
    alike: true,
    ...byHand(pool, older),
    close: () => Promise.all([pool.end(), alone.end()]),
  }
}

export function kyselySubject(url: string): Subject {
  const pool = new pg.Pool({ connectionString: url, max: 2 })
  const db = new Kysely<object>({ dialect: new PostgresDialect({ pool }), plugins: [new CamelCasePlugin()] })
  return {
    name: 'kysely',
    roots: { db },
    begin: (work, isolation = 'read committed') => db.transaction().setIsolationLevel(isolation).execute(work),
    // Its own savepoints need a transaction that the app ends itself: here they are typed.
    savepoint: async (tx, work) => {
      const run = (text: string) => (tx as typeof db).executeQuery({ sql: text, parameters: [] } as never)
      await run('savepoint mine')
      try {
        const result = await work(tx)
        await run('release savepoint mine')
        return result
      } catch (error) {
        await run('rollback to savepoint mine')
        throw error
      }
    },
    close: () => db.destroy(),
  }
}

export function runSubject(url: string): Subject {
  const pool = new pg.Pool({ connectionString: url, max: 2 })
  const handleOf = (on: pg.Pool | pg.PoolClient): Handle => ({
    run: async (text, values) => (await on.query(text, values)).rows,
  })
  return {
    name: 'any client behind { run }',
    roots: { 'a run on the pool': handleOf(pool) },
    alike: true,
    ...byHand(pool, handleOf),
    close: () => pool.end(),
  }
}

export function prismaShapeSubject(url: string): Subject {
  const pool = new pg.Pool({ connectionString: url, max: 2 })
  const prisma = prismaShape(pool)
  return {
    name: 'the shape of Prisma',
    roots: { prisma },
    begin: (work, isolation) => prisma.$transaction(work, isolation),
    savepoint: (tx, work) => (tx as typeof prisma).$transaction(work),
    stateOf: prismaState,
    close: () => pool.end(),
  }
}

export const prismaState = (error: Error): unknown =>
  (error as { meta?: { driverAdapterError?: { cause?: { originalCode?: string } } } }).meta?.driverAdapterError?.cause
    ?.originalCode

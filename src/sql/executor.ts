// How a verb reaches the database: text parameters only, cast in the statement, so that every driver sends them alike.
import postgres from 'postgres'
import { OutledgerError } from '../errors.ts'

export type Value = string | null
export type Row = Record<string, unknown>

/** Anything that runs one statement. `$n` stand for the values, in order; rows come back as plain objects. */
export interface Executor {
  run<T = Row>(text: string, values: readonly Value[]): Promise<T[]>
}

export interface Database extends Executor {
  /** Ends all connections; statements that still run are cut off after `timeoutMs`. */
  close(timeoutMs?: number): Promise<void>
}

type Element = string | number | bigint | boolean | null

/** An array as a Postgres array literal. */
export function arrayLiteral(values: readonly Element[]): string {
  let text = '{'
  for (let i = 0; i < values.length; i++) {
    const value = values[i] as Element
    if (i > 0) text += ','
    if (value === null) text += 'NULL'
    else if (typeof value === 'string') text += `"${ESCAPED.test(value) ? value.replace(/[\\"]/g, '\\$&') : value}"`
    else text += value
  }
  return `${text}}`
}

const ESCAPED = /[\\"]/

/** An instant as ISO text in UTC with microseconds: it parses the same under any DateStyle, and JavaScript dates lose digits. */
export const iso = (expression: string): string =>
  `to_char(${expression} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`

/** A pooler has taken the session away: a prepared statement is unknown there, or known under somebody else's name. */
const UNPREPARED = new Set(['26000', '42P05', '08P01'])

/** A server that takes a connection and says nothing is given up after this, however long its statements may take. */
const CONNECT_LIMIT_MS = 10_000

/** How long the server has to answer a cancel request before the connection counts as lost. */
const CANCEL_MS = 1_000

const READ_ONLY = '25006'

/**
 * Connections of our own to `url`. postgres.js knows no deadline for a statement, and a connection into a black hole
 * would wait for ever: after `deadlineMs` the statement is cancelled, and if even that has no answer the client with all
 * its sockets is replaced.
 *
 * Statements are prepared (planning is a third of a claim's cost) until a pooler in transaction mode shows that it cannot
 * do that; a statement refused for this reason has done nothing and is sent again, and all later ones unprepared.
 */
export function connect(url: string, { max, deadlineMs }: { max: number; deadlineMs: number }): Database {
  const open = () =>
    postgres(url, {
      max,
      fetch_types: false,
      onnotice: () => {},
      connect_timeout: Math.ceil(Math.min(deadlineMs, CONNECT_LIMIT_MS) / 1000),
      idle_timeout: 0,
      max_lifetime: null,
      // Its own pause grows to 20 s and holds statements back long after the database is there again; ours is in loop.ts.
      backoff: () => 0,
      connection: { application_name: 'outledger' },
    })
  let client = open()
  let prepare = true
  const replace = (broken: postgres.Sql) => {
    if (broken === client) client = open()
    broken.end({ timeout: 0 }).catch(() => {})
  }
  const send = async <T>(text: string, values: readonly Value[]): Promise<T[]> => {
    const used = client
    const query = used.unsafe(text, values as Value[], { prepare })
    let timers: NodeJS.Timeout[] = []
    let cancelled = false
    const late = () => new OutledgerError('database_timeout', `no answer from the database within ${deadlineMs} ms`)
    const deadline = new Promise<never>((_, reject) => {
      // First ask the server to stop: a statement that waits for a lock would wait on without us, and the next with it.
      timers = [
        setTimeout(() => {
          cancelled = true
          cancel(query)
        }, deadlineMs),
        setTimeout(() => {
          replace(used)
          reject(late())
        }, deadlineMs + CANCEL_MS),
      ]
    })
    try {
      return (await Promise.race([query, deadline])) as unknown as T[]
    } catch (error) {
      // No longer the primary: only a new connection can find the one that is.
      if ((error as { code?: string }).code === READ_ONLY) replace(used)
      throw cancelled ? late() : error
    } finally {
      for (const timer of timers) clearTimeout(timer)
    }
  }
  return {
    async run<T>(text: string, values: readonly Value[]): Promise<T[]> {
      try {
        return await send<T>(text, values)
      } catch (error) {
        if (!prepare || !UNPREPARED.has((error as { code?: string }).code ?? '')) throw error
        prepare = false
        return send<T>(text, values)
      }
    },
    async close(timeoutMs = 1_000) {
      await client.end({ timeout: timeoutMs / 1000 })
    },
  }
}

/** `query.cancel()` drops the promise of the connection it makes: where that is refused, nobody would catch it. */
function cancel(query: object): void {
  const { canceller } = query as { canceller?: ((query: object) => Promise<void>) | null }
  canceller?.(query).catch(() => {})
}

// A connection of its own whose transaction is in the test's hands, so that two of them really interleave.
import { setImmediate as turn } from 'node:timers/promises'
import postgres from 'postgres'
import type { Executor, Row, Value } from '../../src/sql/executor.ts'
import type { TestDatabase } from './database.ts'
import { until } from './until.ts'

export interface Session extends Executor {
  readonly pid: number
  commit(): Promise<void>
  rollback(): Promise<void>
  /** Resolves when this session's statement waits for a lock that another one holds, or when `unless` is over first. */
  untilBlocked(unless?: Promise<unknown>): Promise<void>
}

const DEADLINE_MS = 10_000

/** Open a transaction (READ COMMITTED unless told otherwise) on a connection of its own. */
export async function begin(db: TestDatabase, mode = ''): Promise<Session> {
  const own = postgres(db.url, { max: 1, fetch_types: false, onnotice: () => {} })
  const run = async <T = Row>(text: string, values: readonly Value[]) =>
    [...(await own.unsafe(text, [...values]))] as T[]
  const [me] = await run<{ pid: number }>('select pg_backend_pid() as pid', [])
  await run(`begin ${mode}`, [])
  // What waits for a session of the same test would wait for ever.
  await run(`set local lock_timeout = '${DEADLINE_MS}ms'`, [])
  const end = async (how: string) => {
    await run(how, [])
    await own.end({ timeout: 1 })
  }
  return {
    run,
    pid: me?.pid ?? 0,
    commit: () => end('commit'),
    rollback: () => end('rollback'),
    async untilBlocked(unless) {
      const deadline = performance.now() + DEADLINE_MS
      let over = false
      const end = () => {
        over = true
      }
      unless?.then(end, end)
      while (performance.now() < deadline) {
        if (over) return
        const waiting = await db.query('select from pg_locks where pid = $1 and not granted', me?.pid ?? 0)
        if (waiting.length > 0) return
        await turn()
      }
      throw new Error('the session does not wait for a lock')
    },
  }
}

/** Who waits for a lock in this database; the other tests have the same server. A lock of a row names no database. */
export const waiting = (db: TestDatabase) =>
  db.query(`select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`)

/** The claiming loop writes the heartbeat: so many more of them are so many more rounds. */
export async function rounds(db: TestDatabase, n = 2): Promise<void> {
  for (let round = 0; round < n; round++) {
    const [last] = await db.query<{ at: string }>('select beat_at::text as at from outbox.poller')
    // As text: the client would cut what it takes for an instant to milliseconds, and the beat that was is later than that.
    const later = () => db.query('select 1 from outbox.poller where beat_at > $1::text::timestamptz', last?.at ?? '')
    await until('another heartbeat', async () => (await later()).length === 1)
  }
}

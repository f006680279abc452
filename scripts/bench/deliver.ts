// The poller as a user starts it, in a process of its own, over a backlog that is there before. Its rate is read from the ledger.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import type { Sql } from 'postgres'
import { type Measured, Meter, type Pids } from './cpu.ts'

const WARM_UP_MS = 2_000

/** On top of what is measured: more than one poller delivers while it warms up. */
const WARM_UP_DELIVERIES = 30_000

export interface Delivering {
  readonly sql: Sql
  readonly databaseUrl: string
  readonly payload: string
  readonly count: number
  readonly pids: Pids
  /** Where the sources are that are measured. */
  readonly folder?: string
}

export async function deliver({ sql, databaseUrl, payload, count, pids, folder = '.' }: Delivering): Promise<Measured> {
  await sql`
    select count(*) from generate_series(1, ${count + WARM_UP_DELIVERIES}::int) as i
    cross join lateral outbox.enqueue('bench', 'bench-' || 100000 + i, 'payment.captured', ${payload}::text)`
  await sql`checkpoint`
  const args = ['--import', 'tsx', 'src/cli/main.ts', 'work', '--log-level', 'warn']
  const poller = spawn(process.execPath, args, {
    cwd: folder,
    stdio: ['ignore', 'inherit', 'inherit'],
    env: { ...process.env, DATABASE_URL: databaseUrl },
  })
  const exited = once(poller, 'exit')
  try {
    const until = async (condition: () => Promise<boolean>) => {
      while (!(await condition())) {
        if (poller.exitCode !== null) throw new Error(`the poller ended with exit code ${poller.exitCode}`)
        await pause(100)
      }
    }
    await until(async () => (await sql`select from outbox.attempt limit 1`).length > 0)
    await pause(WARM_UP_MS)
    const meter = new Meter({ ...pids, poller: poller.pid as number })
    const [from] = await sql`select clock_timestamp()::text as at`
    await until(async () => (await sql`select from outbox.queue limit 1`).length === 0)
    const [row] = await sql`
      select count(*)::int as n, count(*) / extract(epoch from max(a.finished_at) - ${from?.at}::timestamptz)::float8 as per_second
      from outbox.attempt a where a.finished_at > ${from?.at}::timestamptz and a.outcome = 'delivered'`
    return meter.measured(row?.n, row?.per_second)
  } finally {
    poller.kill('SIGTERM')
    await exited
  }
}

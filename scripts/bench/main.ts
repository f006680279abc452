// npm run bench: how much of what the machine can send at most is left when every delivery is claimed, signed, and put on record.
import { type ChildProcess, fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpus } from 'node:os'
import { parseArgs } from 'node:util'
import postgres from 'postgres'
import { migrate, putEndpoint } from '../../src/index.ts'
import { startPostgres } from '../embedded-postgres.ts'
import { ceilingRate } from './ceiling.ts'

const { values } = parseArgs({
  options: {
    json: { type: 'boolean' },
    deliveries: { type: 'string', default: '50000' },
    bytes: { type: 'string', default: '909' },
  },
})
const deliveries = Number(values.deliveries)
const WARM_UP_MS = 2_000
const IN_FLIGHT = 64
const SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`

const say = (text: string) => {
  if (!values.json) console.log(text)
}

const tsx = ['--import', 'tsx']
const server = await startPostgres()
const receiver = fork(new URL('./receiver.ts', import.meta.url), { execArgv: tsx })
const sql = postgres(server.url, { onnotice: () => {} })
try {
  const [{ port }] = (await once(receiver, 'message')) as [{ port: number }]
  const url = new URL(`http://127.0.0.1:${port}/hooks`)
  process.env.BENCH_SECRET = SECRET
  await migrate(server.url)
  await putEndpoint(sql, {
    name: 'bench',
    url: url.href,
    secret: 'env:BENCH_SECRET',
    allowInsecure: true,
    allowPrivate: true,
  })

  const before = await ceiling(url)
  say(`ceiling            ${before.toFixed(0)} requests/s (bare undici loop, ${IN_FLIGHT} in flight)`)
  const warmUp = Math.ceil((before * WARM_UP_MS) / 1000)
  const [{ version }] = (await sql`select current_setting('server_version') as version`) as unknown as [
    { version: string },
  ]
  await enqueue(deliveries + warmUp)
  const { rate, measured } = await deliver(deliveries + warmUp)
  say(
    `outledger          ${rate.toFixed(0)} deliveries/s (${measured} after ${WARM_UP_MS / 1000} s of warm-up, one poller, default settings)`,
  )
  const after = await ceiling(url)
  say(`ceiling again      ${after.toFixed(0)} requests/s`)
  const ratio = rate / Math.max(before, after)
  const machine = `Node ${process.version}, PostgreSQL ${version}, ${cpus().length} cores (${cpus()[0]?.model.trim()})`
  say(`ratio to ceiling   ${ratio.toFixed(3)}   ${machine}`)
  if (values.json) {
    console.log(
      JSON.stringify({
        ratio_to_ceiling: round(ratio),
        delivered_per_s: round(rate),
        ceiling_per_s: round(Math.max(before, after)),
        measured,
        machine,
      }),
    )
  }
} finally {
  receiver.disconnect()
  await sql.end({ timeout: 1 })
  await server.stop()
}

function round(value: number): number {
  return Math.round(value * 1000) / 1000
}

/** The longer half of the requests counts: the first warms up. */
async function ceiling(url: URL): Promise<number> {
  const body = Buffer.from(payload())
  const headers = Object.entries({
    'content-type': 'application/json',
    'accept-encoding': 'identity',
    'user-agent': 'outledger/0.1.0',
    'idempotency-key': 'bench-100000',
    'webhook-id': 'bench-100000',
    'webhook-timestamp': '1700000000',
    'webhook-signature': `v1,${Buffer.alloc(32).toString('base64')}`,
    'outledger-type': 'payment.captured',
    'outledger-attempt': '1',
  }).flat()
  const warm = await ceilingRate({ url, headers, body }, 20_000, IN_FLIGHT)
  await ceilingRate({ url, headers, body }, Math.ceil((warm * WARM_UP_MS) / 1000), IN_FLIGHT)
  return ceilingRate({ url, headers, body }, deliveries, IN_FLIGHT)
}

function payload(): string {
  const start = '{"amount":1842,"currency":"EUR","note":"'
  return `${start}${'x'.repeat(Number(values.bytes) - start.length - 2)}"}`
}

async function enqueue(count: number): Promise<void> {
  await sql`
    select count(*) from generate_series(1, ${count}::int) as i
    cross join lateral outbox.enqueue('bench', 'bench-' || 100000 + i, 'payment.captured', ${payload()}::text)`
  await sql`checkpoint`
}

/** The poller as a user starts it, in a process of its own; the rate is read from the ledger. */
async function deliver(count: number): Promise<{ rate: number; measured: number }> {
  const args = [...tsx, 'src/cli/main.ts', 'work', '--log-level', 'warn']
  const poller: ChildProcess = spawn(process.execPath, args, {
    stdio: ['ignore', 'inherit', 'inherit'],
    env: { ...process.env, DATABASE_URL: server.url },
  })
  try {
    for (let left = count; left > 0; ) {
      await new Promise((resolve) => setTimeout(resolve, 200))
      const [row] = (await sql`select count(*)::int as left from outbox.queue`) as unknown as [{ left: number }]
      left = row.left
    }
  } finally {
    poller.kill('SIGTERM')
    await once(poller, 'exit')
  }
  const [row] = (await sql`
    with t as (select min(started_at) + ${WARM_UP_MS} * interval '1 millisecond' as warm, max(finished_at) as last from outbox.attempt),
    n as (select count(*)::int as measured from outbox.attempt a, t where a.finished_at > t.warm)
    select n.measured, n.measured / extract(epoch from t.last - t.warm)::float8 as rate from t, n`) as unknown as [
    { rate: number; measured: number },
  ]
  return row
}

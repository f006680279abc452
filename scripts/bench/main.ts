// npm run bench: how much of what the machine can send at most is left when every delivery is claimed, signed, and put on record.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { cpus } from 'node:os'
import { parseArgs } from 'node:util'
import postgres from 'postgres'
import { migrate, putEndpoint } from '../../src/index.ts'
import { startPostgres } from '../embedded-postgres.ts'
import { ceiling } from './ceiling.ts'
import { deliver } from './deliver.ts'

const { values } = parseArgs({
  options: {
    json: { type: 'boolean', default: false },
    deliveries: { type: 'string', default: '50000' },
    bytes: { type: 'string', default: '909' },
  },
})
const [deliveries, bytes] = [Number(values.deliveries), Number(values.bytes)]
if (!(Number.isInteger(deliveries) && deliveries >= 1_000 && Number.isInteger(bytes) && bytes >= 50)) {
  console.error('bench: --deliveries is a whole number from 1000, --bytes one from 50')
  process.exit(2)
}
const say = (text: string) => {
  if (!values.json) console.log(text)
}

const server = await startPostgres()
const receiver = fork(new URL('./receiver.ts', import.meta.url), { execArgv: ['--import', 'tsx'] })
const sql = postgres(server.url, { onnotice: () => {} })
try {
  const [{ port }] = (await once(receiver, 'message')) as [{ port: number }]
  const url = new URL(`http://127.0.0.1:${port}/hooks`)
  process.env.BENCH_SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
  await migrate(server.url)
  const local = { secret: 'env:BENCH_SECRET', allowInsecure: true, allowPrivate: true }
  await putEndpoint(sql, { name: 'bench', url: url.href, ...local })
  const note = 'x'.repeat(bytes - '{"cents":1842,"note":""}'.length)
  const payload = `{"cents":1842,"note":"${note}"}`
  const pids = { receiver: receiver.pid as number, postgres: server.pid }

  // Before and after, and the better of the two counts: a machine that slows down shall not flatter us.
  const first = await ceiling({ url, payload, count: deliveries, pids })
  say(`ceiling            ${line(first)}   (bare undici loop, 64 in flight)`)
  const delivered = await deliver({ sql, databaseUrl: server.url, payload, count: deliveries, pids })
  say(`outledger          ${line(delivered)}   (one poller, default settings and durability)`)
  const second = await ceiling({ url, payload, count: deliveries, pids })
  say(`ceiling again      ${line(second)}`)
  const best = first.perSecond > second.perSecond ? first : second
  const ratio = delivered.perSecond / best.perSecond
  const [row] = (await sql`select current_setting('server_version') as version`) as unknown as [{ version: string }]
  const machine = `Node ${process.version}, PostgreSQL ${row.version}, ${cpus().length} cores, ${cpus()[0]?.model.trim()}`
  say(`ratio to ceiling   ${ratio.toFixed(3)}   ${machine}`)
  if (values.json) {
    console.log(
      JSON.stringify({ ratio_to_ceiling: Number(ratio.toFixed(3)), outledger: delivered, ceiling: best, machine }),
    )
  }
} finally {
  receiver.disconnect()
  await sql.end({ timeout: 1 })
  await server.stop()
}

function line({ perSecond, cpuMicros }: { perSecond: number; cpuMicros: Record<string, number> | null }): string {
  const parts = Object.entries(cpuMicros ?? {}).map(([name, micros]) => `${name} ${micros}`)
  return `${String(perSecond).padStart(6)}/s${parts.length > 0 ? `, processor µs each: ${parts.join(' + ')}` : ''}`
}

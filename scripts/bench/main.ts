// npm run bench: how much of what the machine can send at most is left when every delivery is claimed, signed, and put on record.
// With --against COMMIT: this tree and that one in turn, and how their rates compare.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { cpus } from 'node:os'
import { parseArgs } from 'node:util'
import postgres from 'postgres'
import { migrate, putEndpoint } from '../../src/index.ts'
import { startPostgres } from '../embedded-postgres.ts'
import { ceiling } from './ceiling.ts'
import type { Pids } from './cpu.ts'
import { deliver } from './deliver.ts'
import { type Comparison, paired } from './paired.ts'

const { values } = parseArgs({
  options: {
    json: { type: 'boolean', default: false },
    deliveries: { type: 'string', default: '50000' },
    bytes: { type: 'string', default: '909' },
    against: { type: 'string' },
    pairs: { type: 'string', default: '6' },
  },
})
const [deliveries, bytes, pairs] = [values.deliveries, values.bytes, values.pairs].map(Number) as [
  number,
  number,
  number,
]
const wholeFrom = (least: number, value: number) => Number.isInteger(value) && value >= least
if (!(wholeFrom(1_000, deliveries) && wholeFrom(50, bytes) && wholeFrom(1, pairs))) {
  console.error('bench: --deliveries is a whole number from 1000, --bytes one from 50, --pairs one from 1')
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
  const note = 'x'.repeat(bytes - '{"cents":1842,"note":""}'.length)
  const payload = `{"cents":1842,"note":"${note}"}`
  const pids = { receiver: receiver.pid as number, postgres: server.pid }

  const work = { url, payload, count: deliveries, pids }
  if (values.against === undefined) await alone(work)
  else await compared(work, values.against)
} finally {
  receiver.disconnect()
  await sql.end({ timeout: 1 })
  await server.stop()
}

interface Work {
  readonly url: URL
  readonly payload: string
  readonly count: number
  readonly pids: Pids
}

async function alone(work: Work): Promise<void> {
  await migrate(server.url)
  const local = { secret: 'env:BENCH_SECRET', allowInsecure: true, allowPrivate: true }
  await putEndpoint(sql, { name: 'bench', url: work.url.href, ...local })

  // Before and after, and the better of the two counts: a machine that slows down shall not flatter us.
  const first = await ceiling(work)
  say(`ceiling            ${line(first)}   (bare undici loop, 64 in flight)`)
  const delivered = await deliver({ ...work, sql, databaseUrl: server.url })
  say(`outledger          ${line(delivered)}   (one poller, default settings and durability)`)
  const second = await ceiling(work)
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
}

async function compared(work: Work, against: string): Promise<void> {
  const { rate, cpu } = await paired({ ...work, against, pairs, server: server.url, say })
  const ratio = ({ ratioOfMedians, lowestPair, highestPair }: Comparison) =>
    `${ratioOfMedians.toFixed(3)}   (pairs from ${lowestPair.toFixed(3)} to ${highestPair.toFixed(3)})`
  say(`this tree to ${against}, ratio of medians`)
  say(`rate               ${ratio(rate)}`)
  if (cpu !== null) say(`processor time     ${ratio(cpu)}   poller and Postgres, for one delivery`)
  if (values.json) console.log(JSON.stringify({ against, rate, cpu }))
}

function line({ perSecond, cpuMicros }: { perSecond: number; cpuMicros: Record<string, number> | null }): string {
  const parts = Object.entries(cpuMicros ?? {}).map(([name, micros]) => `${name} ${micros}`)
  return `${String(perSecond).padStart(6)}/s${parts.length > 0 ? `, processor µs each: ${parts.join(' + ')}` : ''}`
}

// One run: endpoints, pollers in processes of their own, deliveries, blows, until nothing is open; then the two lists.
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { extname, join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { Sql } from 'postgres'
import { type Message, outbox, putEndpoint, resumeEndpoint } from '../../src/index.ts'
import { certificate, newAuthority } from '../../test/support/certificates.ts'
import { Crew } from '../demo/crew.ts'
import { together } from '../demo/together.ts'
import { chanceOf } from './chance.ts'
import type { Lists, Receipt, Row } from './compare.ts'
import { Line } from './line.ts'
import { Peer } from './peer.ts'
import { type Blow, blowsOf, endpointsOf, messagesOf, payloadOf } from './plan.ts'

const POLLERS = ['poller-1', 'poller-2', 'poller-3'] as const

const MAIN = fileURLToPath(new URL(`../../src/cli/main${extname(import.meta.url)}`, import.meta.url))

/** Deadline of one statement: so much later than the truth may a row's instants be. */
const DATABASE_DEADLINE_MS = 1_000

/** Short leases, so that what a killed poller had comes back soon. */
const FLAGS = Object.entries({
  slots: 16,
  'lease-ms': 1_000,
  'timeout-ms': 500,
  'settle-budget-ms': 300,
  'grace-ms': 200,
  'heartbeat-ms': 200,
  'poll-interval-ms': 20,
  'sweep-interval-ms': 200,
  'database-deadline-ms': DATABASE_DEADLINE_MS,
}).map(([name, value]) => `--${name}=${value}`)

/** The endpoints' rows say `env:` and this name; the value is made anew for each run. */
const SECRET = 'OUTLEDGER_WIRE_SECRET'

const LOOK_MS = 20
const BATCH = 100
/** Part of the deliveries that are open at a time, so that each blow falls into open work, and some of them. */
const OPEN_SHARE = 0.1
const OPEN_LEAST = 200

export interface RunOptions {
  readonly sql: Sql
  readonly databaseUrl: string
  readonly seed: number
  readonly attempts: number
  readonly signal: AbortSignal
  readonly say: (text: string) => void
}

export interface Outcome extends Lists {
  /** How often each fault was met. */
  readonly met: ReadonlyMap<string, number>
}

export async function run(options: RunOptions): Promise<Outcome> {
  const { sql, databaseUrl, seed, attempts, signal } = options
  const chance = chanceOf(seed)
  const endpoints = endpointsOf(chance)
  const messages = messagesOf(chance, endpoints, attempts)
  const blows = blowsOf(chance, POLLERS.length, attempts)
  // An authority of this run, which its pollers trust as they trust a private one in production.
  const authority = newAuthority()
  process.env.OUTLEDGER_TEST_AUTHORITY_KEY = authority.key
  process.env[SECRET] = `whsec_${randomBytes(32).toString('base64')}`
  const folder = mkdtempSync(join(tmpdir(), 'outledger-wire-'))
  const trust = join(folder, 'authority.pem')
  writeFileSync(trust, authority.cert)
  const [peer, crew] = [new Peer(chance, certificate('valid')), new Crew()]
  const lines: Line[] = []
  try {
    for (const plan of endpoints)
      await putEndpoint(sql, {
        name: plan.name,
        url: await peer.listen(plan),
        secret: `env:${SECRET}`,
        ...plan.settings,
      })
    for (const _ of POLLERS) lines.push(await Line.to(databaseUrl))
    const start = (who: number) =>
      crew.start(POLLERS[who] as string, {
        file: MAIN,
        args: ['work', '--name', POLLERS[who] as string, ...FLAGS],
        env: { DATABASE_URL: (lines[who] as Line).url, NODE_EXTRA_CA_CERTS: trust },
        ready: /poller started/,
      })
    await together(signal, () => POLLERS.map((_, who) => start(who)))
    await Promise.race([
      crew.failed,
      together(signal, (signal) => {
        const over = new AbortController()
        const until = AbortSignal.any([signal, over.signal])
        const playing = play({ ...options, signal }, messages, blows, { peer, crew, lines, start })
        return [playing.finally(() => over.abort()), resumeAll(sql, until)]
      }),
    ])
    signal.throwIfAborted()
    await crew.stop()
    const bodies = new Map(messages.map(({ key }) => [key, key]))
    const bodyOf = (key: string) => (bodies.has(key) ? Buffer.from(payloadOf(chance, key)) : null)
    const { seen, unread, strays, met } = peer
    return { seen, unread, strays, met, bodyOf, slackMs: 2 * DATABASE_DEADLINE_MS, ...(await ledgerOf(sql)) }
  } finally {
    await crew.stop()
    await peer.close()
    for (const line of lines) line.close()
    rmSync(folder, { recursive: true })
  }
}

interface Stage {
  readonly peer: Peer
  readonly crew: Crew
  readonly lines: readonly Line[]
  readonly start: (who: number) => Promise<unknown>
}

/** Enqueue batch by batch, so that there is open work whenever a blow falls; then until all has ended. */
async function play(
  options: RunOptions,
  messages: readonly Message[],
  blows: readonly Blow[],
  stage: Stage,
): Promise<void> {
  const { sql, signal } = options
  const left = [...blows]
  for (let i = 0; i < messages.length && !signal.aborted; i += BATCH) {
    await untilOpen(sql, OPEN_LEAST + OPEN_SHARE * messages.length, signal)
    await sql.begin((tx) => outbox.enqueueMany(tx, messages.slice(i, i + BATCH)))
    while (left[0] !== undefined && left[0].at <= (i + BATCH) / messages.length && !signal.aborted)
      await strike(options, left.shift() as Blow, stage)
  }
  await untilOpen(sql, 0, signal)
}

async function strike({ say }: RunOptions, { kind, who }: Blow, { peer, crew, lines, start }: Stage): Promise<void> {
  const name = POLLERS[who] as string
  say(`after ${peer.seen.length} requests: ${kind}${kind === 'open' ? '' : ` ${name}`}`)
  if (kind === 'open') return peer.open()
  if (kind === 'cut') return lines[who]?.cut()
  await (kind === 'kill' ? crew.kill(name) : crew.stop([name]))
  await start(who)
}

/** At most so many deliveries are open. */
async function untilOpen(sql: Sql, limit: number, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const [row] = await sql`select count(*)::int as n from outbox.queue`
    if (row?.n <= limit) return
    await pause(LOOK_MS)
  }
}

/** The person who looks after endpoints that paused themselves. */
async function resumeAll(sql: Sql, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const paused = await sql<{ endpoint: string }[]>`select endpoint from outbox.endpoints where paused_at is not null`
    for (const { endpoint } of paused) await resumeEndpoint(sql, endpoint)
    await pause(10 * LOOK_MS)
  }
}

async function ledgerOf(sql: Sql): Promise<{ rows: Row[]; receipts: Receipt[] }> {
  const rows = await sql<Row[]>`
    select e.name as endpoint, d.key, a.number, a.request_sent as "requestSent", a.outcome, a.reason, a.phase,
           a.http_status as "httpStatus", (extract(epoch from a.started_at) * 1000)::float8 as "startedAt",
           (extract(epoch from a.finished_at) * 1000)::float8 as "finishedAt"
    from outbox.attempt a join outbox.delivery d on d.id = a.delivery_id join outbox.endpoint e on e.id = d.endpoint_id
    order by d.id, a.number`
  const receipts = await sql<Receipt[]>`
    select d.key, r.attempts, r.certainty from outbox.receipt r join outbox.delivery d on d.id = r.delivery_id order by d.id`
  return { rows: [...rows], receipts: [...receipts] }
}

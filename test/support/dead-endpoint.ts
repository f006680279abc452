// One endpoint is dead with a large backlog, others are well: what reaches it, what it costs them, and what becomes of it.
import { after } from 'node:test'
import { enqueue, keysOf, putClinic } from './clinic.ts'
import { type TestDatabase, testDatabase } from './database.ts'
import { startPeer } from './peer.ts'
import { startWorker } from './process.ts'
import { until } from './until.ts'

export interface DeadEndpointFigures {
  /** Attempts at it before its circuit tripped, and after that until it was back. */
  readonly before: number
  readonly probes: number
  /** Seconds that it stayed tripped, by the database. */
  readonly trippedS: number
  /** Most lines that the poller logged in any second of these. */
  readonly linesASecond: number
  /** From the commit to the end of the attempt at the other endpoints, 99 of 100, without and with the dead one. */
  readonly turns: readonly { readonly aloneMs: number; readonly besideMs: number }[]
  /** Once it was back. */
  readonly delivered: number
  readonly lost: number
  /** Requests that it got, and different keys among them. */
  readonly requests: number
  readonly effects: number
}

const OTHERS = 4

/** At the default the moment of the next look would be most of what is measured. */
const OFTEN = { 'poll-interval-ms': 50 }

export interface DeadEndpointOptions {
  /** Due deliveries of the dead endpoint, and deliveries of the others meanwhile in each of so many turns. */
  readonly rows: number
  readonly beside: number
  readonly turns: number
  /** Until so many probes have failed. */
  readonly probes: number
}

/** Two databases that differ only in the dead endpoint, each with its poller: what disturbs one turn disturbs those of both. */
export async function deadEndpoint(options: DeadEndpointOptions): Promise<DeadEndpointFigures> {
  const { rows, beside, probes } = options
  const [db, without, well, gone] = [await testDatabase(), await testDatabase(), await startPeer(), await startPeer()]
  await putClinic(db, gone.url, { name: 'dead' })
  for (const each of [db, without])
    for (let i = 0; i < OTHERS; i++) await putClinic(each, well.url, { name: `well-${i}` })
  await gone.close()
  const [worker, other] = [await startWorker(db, OFTEN), await startWorker(without, OFTEN)]
  after(() => Promise.all([worker.kill('SIGKILL'), other.kill('SIGKILL')]))

  await addBacklog(db, rows)
  await until('twenty have failed', async () => (await health(db)).failures >= 20)
  // The ten seconds that they must lie apart have passed.
  await db.query(`update outbox.endpoint set failing_since = failing_since - interval '10 s' where name = 'dead'`)
  await until('it trips', async () => (await health(db)).tripped)
  await until('what was in flight is written', async () => {
    const [row] = await db.query<{ n: number }>(
      `select count(*)::int as n from outbox.deliveries where endpoint = 'dead' and state = 'leased'`,
    )
    return row?.n === 0
  })
  const [{ at = '', n: before = 0 } = {}] = await db.query<{ at: string; n: number }>(
    `select clock_timestamp()::text as at, count(*)::int as n from outbox.attempts where endpoint = 'dead'`,
  )
  const since = Date.parse(at)
  const turns: { aloneMs: number; besideMs: number }[] = []
  for (let turn = 0; turn < options.turns; turn++)
    turns.push({
      aloneMs: await p99(without, `turn-${turn}`, beside),
      besideMs: await p99(db, `turn-${turn}`, beside),
    })
  await until('it was probed', async () => (await probesSince(db, at)) >= probes, 120_000)
  const [{ s: trippedS = 0 } = {}] = await db.query<{ s: number }>(
    `select extract(epoch from clock_timestamp() - '${at}'::timestamptz)::float8 as s`,
  )
  const probed = await probesSince(db, at)
  const perSecond = new Map<number, number>()
  for (const { time } of worker.log) {
    const second = Math.floor((Number(time) - since) / 1_000)
    if (second >= 1) perSecond.set(second, (perSecond.get(second) ?? 0) + 1)
  }

  const back = await startPeer({ port: Number(new URL(gone.url).port) })
  await db.query(`update outbox.endpoint set tripped_until = now() where name = 'dead'`)
  await until('it works again', async () => !(await health(db)).tripped)
  await db.query('update outbox.queue set next_attempt_at = now() where token is null')
  const left = async () => (await db.query('select 1 from outbox.queue limit 1')).length
  await until('the backlog is gone', async () => (await left()) === 0, 300_000)
  const [{ delivered = 0, dead = 0 } = {}] = await db.query<{ delivered: number; dead: number }>(
    `select count(*) filter (where ending = 'delivered')::int as delivered, count(*) filter (where ending <> 'delivered')::int as dead
     from outbox.receipt r join outbox.delivery d on d.id = r.delivery_id where d.key like 'dead-%'`,
  )
  return {
    ...{ before, probes: probed, trippedS, linesASecond: Math.max(0, ...perSecond.values()) },
    ...{ turns, delivered, lost: rows - delivered + dead },
    ...{ requests: back.received.length, effects: new Set(back.received.map(({ key }) => key)).size },
  }
}

async function health(db: TestDatabase): Promise<{ failures: number; tripped: boolean }> {
  const [row] = await db.query<{ failures: number; tripped: boolean }>(
    `select failures, tripped_until is not null as tripped from outbox.endpoints where endpoint = 'dead'`,
  )
  return row ?? { failures: 0, tripped: false }
}

async function probesSince(db: TestDatabase, since: string): Promise<number> {
  const [row] = await db.query<{ n: number }>(
    `select count(*)::int as n from outbox.attempts where endpoint = 'dead' and started_at > '${since}'`,
  )
  return row?.n ?? 0
}

/** The fact and its open work, as enqueue writes them, in two statements for all. */
async function addBacklog(db: TestDatabase, rows: number): Promise<void> {
  await db.query(
    `with d as (
       insert into outbox.delivery (key, endpoint_id, lane, type, payload, payload_sha256, payload_bytes, discovered_by, scheduled_at)
       select 'dead-' || i, e.id, 1024 + i % e.partitions, 't', '{}', sha256('{}'), 2, 'app', clock_timestamp()
       from generate_series(1, ${rows}) i, outbox.endpoint e where e.name = 'dead'
       returning id, endpoint_id, lane)
     insert into outbox.queue (delivery_id, next_attempt_at, endpoint_id, lane) select id, now(), endpoint_id, lane from d`,
  )
}

/** In the rhythm of an app that writes less than can be delivered: else the time in the queue would be all that is measured. */
const EVERY_MS = 25
const AT_ONCE = 5

/** Deliveries for the others, a few at a time; 99 of 100 are done within so many milliseconds. */
async function p99(db: TestDatabase, name: string, n: number): Promise<number> {
  const start = performance.now()
  for (let i = 0; i * AT_ONCE < n; i++) {
    await until('its moment', () => performance.now() >= start + i * EVERY_MS)
    await enqueue(db, keysOf(`${name}-${i}`, AT_ONCE), { endpoint: `well-${i % OTHERS}` })
  }
  const done = `from outbox.attempts a join outbox.delivery d on d.key = a.key where a.key like '${name}-%'`
  await until('the others are delivered', async () => {
    const [row] = await db.query<{ n: number }>(`select count(*)::int as n ${done} and a.outcome = 'delivered'`)
    return row?.n === n
  })
  const [row] = await db.query<{ ms: number }>(
    `select percentile_cont(0.99) within group (order by extract(epoch from a.finished_at - d.discovered_at) * 1000)::float8 as ms ${done}`,
  )
  return row?.ms ?? Number.NaN
}

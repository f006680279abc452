// case C12
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import postgres from 'postgres'
import { startPostgres } from '../../scripts/embedded-postgres.ts'
import { migrate } from '../../src/index.ts'
import { enqueue, keysOf, putClinic } from '../support/clinic.ts'
import { startPeer } from '../support/peer.ts'
import { QUICK, startWorker } from '../support/process.ts'
import { until } from '../support/until.ts'

// A server of its own: it is going to crash.
const server = await startPostgres({ fsync: 'off' })
const sql = postgres(server.url, { max: 2, fetch_types: false, onnotice: () => {}, backoff: () => 0.05 })
after(async () => {
  await sql.end({ timeout: 1 })
  await server.stop()
})
await migrate(server.url)
const peer = await startPeer()

const delivered = async () => {
  const [row] = await sql`select count(*)::int as n from outbox.receipt where ending = 'delivered'`
  return Number(row?.n)
}
const backends = () =>
  sql<
    { pid: number }[]
  >`select pid from pg_stat_activity where application_name = 'outledger' and pid <> pg_backend_pid()`

const troubles = {
  'every connection is terminated': async () => {
    for (const { pid } of await backends()) await sql`select pg_terminate_backend(${pid}::int)`
  },
  // Postgres then throws everybody out and recovers from its log, as after a power cut.
  'a backend is killed and the server restarts': async () => {
    const [victim] = await backends()
    if (victim) process.kill(victim.pid, 'SIGKILL')
  },
}

test('pollers live through terminated connections and a crash of the server, and everything is delivered', async () => {
  await putClinic({ sql }, peer.url, { retryDelayMs: 100 })
  const workers = await Promise.all(['a', 'b'].map((name) => startWorker(server, { ...QUICK, name })))
  const plan = [...Object.entries(troubles), ...Object.entries(troubles)]
  for (const [i, [what, trouble]] of plan.entries()) {
    const already = i * 200
    await until('enqueued', () =>
      enqueue({ sql }, keysOf(`round-${i}`, 200)).then(
        () => true,
        () => false,
      ),
    )
    await until(`${what}, in the middle of the work`, () => peer.received.length > already + 50)
    await trouble()
    await until(`after that (${what}) everything is delivered`, () =>
      delivered().then(
        (n) => n === already + 200,
        () => false,
      ),
    )
  }
  for (const worker of workers) {
    worker.kill('SIGTERM')
    assert.deepEqual(await worker.ended, { code: 0, signal: null })
    assert.deepEqual(worker.complaints, [])
    assert.deepEqual(
      worker.log.filter(({ level }) => Number(level) >= 50),
      [],
      'trouble that passes is no error',
    )
  }
  assert.deepEqual(
    [...(await sql`select state, count(*)::int as n from outbox.deliveries group by state`)],
    [{ state: 'delivered', n: 800 }],
  )
})

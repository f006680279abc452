// Results on their way into the ledger: batches, fenced ones, refused ones, answers that were lost.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, test } from 'node:test'
import { Events } from '../src/events.ts'
import { type Pending, Settler } from '../src/settler.ts'
import { claim } from '../src/sql/claim.ts'
import { connect, type Executor } from '../src/sql/executor.ts'
import { enqueue, keysOf, putClinic } from './support/clinic.ts'
import { testDatabase } from './support/database.ts'
import { said } from './support/ledger.ts'
import { startProxy } from './support/proxy.ts'

const db = await testDatabase()
await putClinic(db, 'http://127.0.0.1:1/', { partitions: 1 })

/** Lease what is due and tell each as a result that was delivered, unless `differs` says otherwise. */
async function leased(keys: string[], differs: Partial<Pending> = {}): Promise<Pending[]> {
  await enqueue(db, keys)
  const token = randomUUID()
  const lanes = [{ endpointId: 1, lane: 1024, limit: 500, floor: null }]
  const options = { lanes, total: 500, slackMs: 0, leaseMs: 30_000, timeoutMs: 20_000, token, poller: 'a' }
  const { claims } = await claim(db, options)
  assert.equal(claims.length, keys.length)
  return claims.map((row) => ({
    ...{ deliveryId: row.delivery_id, number: row.number, token, outcome: 'delivered', verdict: 'delivered' },
    ...{ reason: null, endReason: null, delayMs: 0, httpStatus: 200, phase: 'done', requestSent: true },
    ...{
      targetHost: '127.0.0.1',
      tookMs: 5,
      bytesOut: 1,
      bytesIn: 0,
      retryAfterMs: null,
      replayed: false,
      excerpt: null,
    },
    ...{ endedAt: performance.now(), agoMs: 0, said: said() },
    ...differs,
  }))
}

function settlerOn(executor: Executor) {
  const events = new Events()
  const told: string[] = []
  events.on('trouble', ({ during, code }) => told.push(`${during} ${code}`))
  events.on('fenced', ({ number, late }) => told.push(`fenced ${number} ${late ? 'noted' : 'known'}`))
  const ending = new AbortController()
  return { settler: new Settler({ db: executor, name: 'a', events, signal: ending.signal }), told, events, ending }
}
const states = (prefix: string) =>
  db.query(
    'select state, count(*)::int as n from outbox.deliveries where key like $1 group by 1 order by 1',
    `${prefix}-%`,
  )

test('many results are written in batches, each once', async () => {
  const { settler, told } = settlerOn(db)
  for (const result of await leased(keysOf('many', 450))) settler.push(result)
  await settler.flush()
  assert.equal(settler.waiting, 0)
  assert.equal(settler.counts().delivered, 450)
  assert.deepEqual(await states('many'), [{ state: 'delivered', n: 450 }])
  assert.deepEqual(told, [])
})

test('a result that the database refuses does not keep its neighbours from being written', async () => {
  const { settler, told } = settlerOn(db)
  const results = await leased(keysOf('refused', 9))
  // U+0000 has no place in a Postgres text.
  for (const [i, result] of results.entries()) settler.push(i === 4 ? { ...result, reason: 'a\0b' } : result)
  await settler.flush()
  assert.deepEqual(await states('refused'), [
    { state: 'delivered', n: 8 },
    { state: 'leased', n: 1 },
  ])
  assert.deepEqual(told, ['settle 22021'])
  await db.query('delete from outbox.queue')
})

test('a result whose lease is somebody else’s changes nothing, is counted as fenced and is kept as evidence', async () => {
  const [result] = await leased(keysOf('fenced', 1))
  assert.ok(result)
  await db.age('fenced-1', '31 seconds')
  const token = randomUUID()
  const lanes = [{ endpointId: 1, lane: 1024, limit: 5, floor: null }]
  await claim(db, { lanes, total: 5, slackMs: 0, leaseMs: 30_000, timeoutMs: 20_000, token, poller: 'b' })
  const { settler, told } = settlerOn(db)
  settler.push(result)
  await settler.flush()
  assert.deepEqual(told, ['fenced 1 noted'])
  assert.deepEqual({ ...settler.counts() }, { ...settler.counts(), delivered: 0, fenced: 1 })
  assert.deepEqual(await db.query('select token, leased_by, attempts from outbox.queue'), [
    { token, leased_by: 'b', attempts: 2 },
  ])
  assert.deepEqual(await db.query(`select number, outcome, http_status from outbox.attempts where key = 'fenced-1'`), [
    { number: 1, outcome: 'delivered', http_status: 200 },
  ])
  await db.query('delete from outbox.queue')
})

test('a settle whose answer was lost is written once', async () => {
  const proxy = await startProxy(db.url)
  const own = connect(proxy.url, { max: 1, deadlineMs: 10_000 })
  after(() => own.close())
  await own.run('select 1', [])
  let lost = false
  // The statement arrives; its answer does not.
  const losing: Executor = {
    run: async (text, values) => {
      if (!lost && text.includes('observed as')) {
        lost = true
        await db.run(text, values)
        proxy.cut()
      }
      return own.run(text, values)
    },
  }
  const { settler, told } = settlerOn(losing)
  for (const result of await leased(keysOf('lost-answer', 3))) settler.push(result)
  await settler.flush()
  assert.equal(lost, true)
  assert.deepEqual(await states('lost-answer'), [{ state: 'delivered', n: 3 }])
  assert.deepEqual(await db.query(`select count(*)::int as n from outbox.attempts where key like 'lost-answer-%'`), [
    { n: 3 },
  ])
  assert.deepEqual(told, [], 'what we wrote ourselves is not fenced')
  assert.equal(settler.counts().delivered, 3)
})

test('leases go back uncharged and after the delay, and only under their token', async () => {
  const { settler } = settlerOn(db)
  const results = await leased(keysOf('released', 2))
  const [mine, other] = results
  assert.ok(mine && other)
  const why = { reason: 'secret_unavailable', delayMs: 5_000, endpoint: 'clinic', class: 'default', problem: 'set it' }
  settler.release([{ ...mine, probe: false }], why)
  settler.release([{ ...other, token: randomUUID(), probe: false }], why)
  await settler.flush()
  assert.equal(settler.counts().released, 1)
  assert.deepEqual(
    await db.query(
      `select attempts, token is null as given, round(extract(epoch from next_attempt_at - clock_timestamp()))::int as s
       from outbox.queue order by delivery_id`,
    ),
    [
      { attempts: 0, given: true, s: 5 },
      { attempts: 1, given: false, s: 30 },
    ],
  )
  await db.query('delete from outbox.queue')
})

test('how long ago an attempt ended is told when it is written, not when it was learned', async () => {
  const { settler } = settlerOn(db)
  const [result] = await leased(keysOf('ago', 1))
  assert.ok(result)
  settler.push({ ...result, endedAt: performance.now() - 4_000, tookMs: 250 })
  await settler.flush()
  const [times] = await db.query<{ ago: number; took: string }>(
    `select extract(epoch from r.ended_at - a.finished_at)::float8 as ago, a.took_ms as took
     from outbox.attempts a join outbox.receipt r using (delivery_id) where a.key = 'ago-1'`,
  )
  assert.equal(Number(times?.took), 250)
  assert.ok(Math.abs((times?.ago ?? 0) - 4) < 1, `${times?.ago} s ago`)
})

test('after the end nothing is begun, and flush returns', async () => {
  const { settler, ending, told } = settlerOn(db)
  const results = await leased(keysOf('ended', 2))
  ending.abort()
  for (const result of results) settler.push(result)
  const why = { reason: 'shutdown', delayMs: 0, endpoint: null, class: null, problem: null }
  settler.release(
    results.map((result) => ({ ...result, probe: false })),
    why,
  )
  await settler.flush()
  assert.deepEqual(await states('ended'), [{ state: 'leased', n: 2 }])
  assert.deepEqual(told, [])
})

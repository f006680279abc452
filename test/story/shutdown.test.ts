// case C16
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { after, test } from 'node:test'
import { enqueue, keysOf, putClinic } from '../support/clinic.ts'
import { testDatabase } from '../support/database.ts'
import { gate, silence, startPeer, when } from '../support/peer.ts'
import { startWorker } from '../support/process.ts'
import { startProxy } from '../support/proxy.ts'
import { until } from '../support/until.ts'

const open = (db: Awaited<ReturnType<typeof testDatabase>>) =>
  db.query(
    `select d.key, q.attempts, q.token is not null as leased, q.next_attempt_at <= clock_timestamp() as due
     from outbox.queue q join outbox.delivery d on d.id = q.delivery_id order by d.id`,
  )

test('SIGTERM ends an idle poller at once, and its heartbeat row with it', async () => {
  const db = await testDatabase()
  const took: number[] = []
  // The fastest of five at most: what a busy machine adds is not ours.
  while (took.length < 5 && !took.some((ms) => ms < 200)) {
    const worker = await startWorker(db, { name: 'idle' })
    await until('its heartbeat', async () => (await db.query('select 1 from outbox.poller')).length === 1)
    worker.kill('SIGTERM')
    assert.deepEqual(await worker.ended, { code: 0, signal: null })
    assert.equal((await db.query('select 1 from outbox.poller')).length, 0)
    took.push(worker.endedAfterMs() ?? Number.POSITIVE_INFINITY)
    assert.equal(worker.log.at(-1)?.msg, 'poller stopped')
  }
  assert.ok(Math.min(...took) < 200, `ended after ${took} ms`)
})

test('SIGTERM lets 50 requests in flight finish, claims nothing more, and exits with 0', async () => {
  const [db, peer] = [await testDatabase(), await startPeer()]
  // Each lane has an eighth of the concurrency: enough for 50, wherever their keys fall.
  await putClinic(db, peer.url, { concurrency: 512 })
  await enqueue(db, keysOf('in-flight', 50))
  const answer = gate()
  peer.answer(when(answer.opened))
  const worker = await startWorker(db)
  await peer.untilReceived(50)
  worker.kill('SIGTERM')
  await enqueue(db, keysOf('too-late', 3))
  answer.open()
  assert.deepEqual(await worker.ended, { code: 0, signal: null })
  assert.deepEqual(
    await db.query('select outcome, count(*)::int as n, max(number) as number from outbox.attempts group by outcome'),
    [{ outcome: 'delivered', n: 50, number: 1 }],
  )
  assert.equal(peer.received.length, 50)
  assert.deepEqual(
    await open(db),
    keysOf('too-late', 3).map((key) => ({ key, attempts: 0, leased: false, due: true })),
  )
})

test('past the grace time, what was sent is settled as unknown, and what was not goes back uncharged', async () => {
  const [db, peer] = [await testDatabase(), await startPeer()]
  // Accepts connections and says nothing: TLS never gets through, so no request is ever sent.
  const mute = createServer(() => {}).listen(0, '127.0.0.1')
  await once(mute, 'listening')
  after(() => mute.close())
  let connected = false
  mute.once('connection', () => {
    connected = true
  })
  await putClinic(db, peer.url)
  await putClinic(db, `https://127.0.0.1:${(mute.address() as AddressInfo).port}/`, { name: 'mute' })
  peer.answer(silence)
  await enqueue(db, ['sent'])
  await enqueue(db, ['unsent'], { endpoint: 'mute' })
  const worker = await startWorker(db, { 'grace-ms': 300 })
  await peer.untilReceived(1)
  await until('the other one is being connected', () => connected)
  worker.kill('SIGTERM')
  assert.deepEqual(await worker.ended, { code: 0, signal: null })
  const took = worker.endedAfterMs() ?? 0
  assert.ok(took >= 300 && took < 300 + 5_000, `ended after ${took} ms`)
  assert.deepEqual(await db.query('select key, number, outcome, verdict, reason, request_sent from outbox.attempts'), [
    { key: 'sent', number: 1, outcome: 'unknown', verdict: 'retry', reason: 'shutdown', request_sent: true },
  ])
  assert.deepEqual(await open(db), [
    { key: 'sent', attempts: 1, leased: false, due: true },
    { key: 'unsent', attempts: 0, leased: false, due: true },
  ])
})

test('a second SIGTERM ends at once', async () => {
  const [db, peer] = [await testDatabase(), await startPeer()]
  await putClinic(db, peer.url)
  await enqueue(db, ['hung'])
  peer.answer(silence)
  const worker = await startWorker(db)
  await peer.untilReceived(1)
  let gone = false
  worker.ended.then(() => {
    gone = true
  })
  // Two that come together count as one: so it is said again until it is heard.
  const kill = () => {
    if (!gone) worker.kill('SIGTERM')
    return gone
  }
  await until('it is gone, long before its grace time', kill, 10_000)
  assert.deepEqual(await worker.ended, { code: 130, signal: null })
  assert.deepEqual(await open(db), [{ key: 'hung', attempts: 1, leased: true, due: false }])
})

test('SIGTERM ends a poller whose database is a black hole', async () => {
  const db = await testDatabase()
  const proxy = await startProxy(db.url)
  const worker = await startWorker(proxy, { 'database-deadline-ms': 300, 'poll-interval-ms': 50 })
  proxy.swallow()
  await until('a statement has missed its deadline', () => worker.log.some(({ code }) => code === 'database_timeout'))
  worker.kill('SIGTERM')
  assert.deepEqual(await worker.ended, { code: 0, signal: null })
  assert.ok((worker.endedAfterMs() ?? Number.POSITIVE_INFINITY) < 10_000)
  assert.deepEqual(worker.complaints, [])
})

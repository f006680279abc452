import assert from 'node:assert/strict'
import { test } from 'node:test'
import { enqueue, keysOf, putClinic } from '../support/clinic.ts'
import { testDatabase } from '../support/database.ts'
import { startPeer } from '../support/peer.ts'
import { QUICK, startWorker } from '../support/process.ts'
import { until } from '../support/until.ts'

const delivered = (db: Awaited<ReturnType<typeof testDatabase>>, n: number) =>
  until(`${n} deliveries`, async () => {
    const [row] = await db.query<{ n: number }>(
      `select count(*)::int as n from outbox.receipt where ending = 'delivered'`,
    )
    return row?.n === n
  })
const pollers = (db: Awaited<ReturnType<typeof testDatabase>>) =>
  db.query('select name from outbox.poller order by name')

test('two pollers share the lanes, and the one that stays takes those of the one that leaves', async () => {
  const [db, peer] = [await testDatabase(), await startPeer()]
  await putClinic(db, peer.url)
  const flags = { ...QUICK, 'heartbeat-ms': 1_000 }
  const [a, b] = await Promise.all(['a', 'b'].map((name) => startWorker(db, { ...flags, name })))
  assert.ok(a && b)
  await until('both have seen the heartbeat of the other', async () => {
    const [seen] = await db.query<{ n: number }>(
      `select count(*)::int as n from outbox.poller p
       where p.beat_at > (select max(started_at) from outbox.poller) or p.started_at = (select max(started_at) from outbox.poller)`,
    )
    return seen?.n === 2
  })
  await enqueue(db, keysOf('shared', 200))
  await delivered(db, 200)
  const lanes = await db.query<{ poller: string; lane: number }>(
    'select distinct a.poller, d.lane from outbox.attempt a join outbox.delivery d on d.id = a.delivery_id',
  )
  assert.deepEqual([...new Set(lanes.map(({ poller }) => poller))].sort(), ['a', 'b'])
  // Eight lanes, and a few more where a busy machine made one poller help out in a lane of the other.
  assert.ok(lanes.length < 12, `${lanes.length} pairs of poller and lane`)

  a.kill('SIGTERM')
  assert.equal((await a.ended).code, 0)
  assert.deepEqual(await pollers(db), [{ name: 'b' }])
  await enqueue(db, keysOf('alone', 50))
  await delivered(db, 250)
  assert.deepEqual(await db.query(`select distinct poller from outbox.attempts where key like 'alone-%'`), [
    { poller: 'b' },
  ])
  b.kill('SIGTERM')
  assert.equal((await b.ended).code, 0)
  assert.deepEqual(await pollers(db), [])
})

test('three pollers deliver 2,000 exactly once each when nothing fails', async () => {
  const [db, peer] = [await testDatabase(), await startPeer()]
  await putClinic(db, peer.url)
  const workers = await Promise.all(['a', 'b', 'c'].map((name) => startWorker(db, { name })))
  const keys = keysOf('event', 2_000)
  for (let i = 0; i < keys.length; i += 100) await enqueue(db, keys.slice(i, i + 100))
  await delivered(db, 2_000)
  for (const worker of workers) worker.kill('SIGTERM')
  for (const worker of workers) assert.equal((await worker.ended).code, 0)
  assert.equal(peer.received.length, 2_000)
  assert.deepEqual(new Set(peer.received.map(({ key }) => key)), new Set(keys))
  assert.deepEqual(await db.query('select count(*)::int as n, max(number) as most from outbox.attempt'), [
    { n: 2_000, most: 1 },
  ])
})

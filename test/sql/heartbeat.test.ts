import assert from 'node:assert/strict'
import { beforeEach, test } from 'node:test'
import { beat, forgetDead, leave } from '../../src/sql/heartbeat.ts'
import { putClinic } from '../support/clinic.ts'
import { testDatabase } from '../support/database.ts'
import { begin } from '../support/session.ts'

const db = await testDatabase()

beforeEach(() => db.query('truncate outbox.poller'))

const beats = async (name: string, heartbeatMs = 5_000, on: Parameters<typeof beat>[0] = db) =>
  (await beat(on, { name, heartbeatMs, version: '1.0.0', declines: [] })).map((live) => live.name).sort()

const silentFor = (name: string, interval: string) =>
  db.query(
    'update outbox.poller set beat_at = beat_at - $2::text::interval, started_at = started_at - $2::text::interval where name = $1',
    name,
    interval,
  )

test('a heartbeat writes one row for each poller and tells who is alive', async () => {
  assert.deepEqual(await beats('a'), ['a'])
  assert.deepEqual(await beats('b', 10_000), ['a', 'b'])
  await silentFor('a', '12 seconds')
  assert.deepEqual(await beats('a'), ['a', 'b'])
  const rows = await db.query(
    `select name, heartbeat_ms, version, beat_at - started_at > interval '12 seconds' as older, beat_at > now() - interval '5 seconds' as fresh
     from outbox.poller order by name`,
  )
  assert.deepEqual(rows, [
    { name: 'a', heartbeat_ms: 5_000, version: '1.0.0', older: true, fresh: true },
    { name: 'b', heartbeat_ms: 10_000, version: '1.0.0', older: false, fresh: true },
  ])
})

test('three missed heartbeats of its own rhythm and a poller is dead; it lives again with its next', async () => {
  await beats('slow', 60_000)
  await beats('fast', 1_000)
  for (const name of ['slow', 'fast']) await silentFor(name, '30 seconds')
  assert.deepEqual(await beats('me'), ['me', 'slow'])
  await silentFor('slow', '151 seconds')
  assert.deepEqual(await beats('me'), ['me'])
  assert.deepEqual(await beats('slow'), ['me', 'slow'])
})

test('who leaves is gone at once', async () => {
  await beats('a')
  await beats('b')
  await leave(db, 'a')
  assert.deepEqual(await beats('b'), ['b'])
})

test('two pollers that beat at once, even under one name, do not fail', async () => {
  const [a, b] = [await begin(db), await begin(db)]
  assert.deepEqual(await beats('a', 5_000, a), ['a'])
  assert.deepEqual(await beats('b', 5_000, b), ['b'], 'not committed yet')
  const twin = beats('a', 5_000, b)
  await b.untilBlocked()
  await a.commit()
  assert.ok((await twin).includes('a'))
  await b.commit()
  assert.deepEqual(await beats('c'), ['a', 'b', 'c'])
})

test('only what has been dead for a day, and for a hundred of its heartbeats, is forgotten', async () => {
  await beats('old')
  await beats('recent')
  await beats('rare', 3_600_000)
  await silentFor('old', '25 hours')
  await silentFor('recent', '23 hours')
  await silentFor('rare', '2 days')
  assert.equal(await forgetDead(db), 1)
  assert.deepEqual(await db.query('select name from outbox.poller order by name'), [
    { name: 'rare' },
    { name: 'recent' },
  ])
})

test('what a poller declines is told to the others with its next heartbeat, by name in the view, and taken back likewise', async () => {
  await putClinic(db, 'http://127.0.0.1:9/')
  const [{ id } = { id: 0 }] = await db.query<{ id: number }>('select id from outbox.endpoint')
  const tell = (declines: number[]) => beat(db, { name: 'a', heartbeatMs: 5_000, version: '1.0.0', declines })
  const shown = () => db.query('select array_to_json(declines) as declines from outbox.pollers where name = $1', 'a')
  assert.deepEqual(await tell([id]), [{ name: 'a', declines: [id] }])
  assert.deepEqual(await shown(), [{ declines: ['clinic'] }])
  await beats('b')
  assert.deepEqual(
    (await beat(db, { name: 'b', heartbeatMs: 5_000, version: '1.0.0', declines: [] })).toSorted((x, y) =>
      x.name < y.name ? -1 : 1,
    ),
    [
      { name: 'a', declines: [id] },
      { name: 'b', declines: [] },
    ],
  )
  assert.deepEqual((await tell([])).find(({ name }) => name === 'a')?.declines, [])
  assert.deepEqual(await shown(), [{ declines: [] }])
})

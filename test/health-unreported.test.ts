// Rejections end deliveries only where the endpoint could be paused for them: not while it cannot be written, and not by what
// was begun before it was changed.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { deliverOnce, enqueue, keysOf, putClinic, testPoller } from './support/clinic.ts'
import { type TestDatabase, testDatabase } from './support/database.ts'
import { gate, type Peer, startPeer, status, when } from './support/peer.ts'
import { startProxy } from './support/proxy.ts'
import { begin, waiting } from './support/session.ts'
import { until } from './support/until.ts'

const states = (db: TestDatabase) =>
  db.query(`select state, count(*)::int as n from outbox.deliveries group by 1 order by 1`)
const endpoint = async (db: TestDatabase) =>
  (await db.query<{ state: string; failures: number }>('select state, failures from outbox.endpoints'))[0]
const comeBack = (db: TestDatabase) => db.query('update outbox.queue set next_attempt_at = now()')

test('while somebody keeps the endpoint locked a wrong secret ends nothing, and five once it is free', async () => {
  const [db, peer] = [await testDatabase(), await startPeer()]
  await putClinic(db, peer.url)
  await enqueue(db, keysOf('a', 20))
  peer.answer(status(401))
  const person = await begin(db)
  await person.run(`select from outbox.endpoint for update`, [])
  await deliverOnce(db)
  assert.deepEqual(await states(db), [{ state: 'waiting', n: 20 }])
  await person.rollback()
  await comeBack(db)
  await deliverOnce(db)
  assert.deepEqual(await states(db), [
    { state: 'dead', n: 5 },
    { state: 'waiting', n: 15 },
  ])
})

test('where nobody may write about the endpoint, a rejection ends what has used up its attempts, with its own reason', async () => {
  const [db, peer] = [await testDatabase(), await startPeer()]
  await putClinic(db, peer.url, { maxAttempts: 2 })
  await db.query(
    `create function refuse() returns trigger language plpgsql as $$ begin raise exception using errcode = '42501'; end $$`,
  )
  await db.query('create trigger refuse before update on outbox.endpoint for each row execute function refuse()')
  await enqueue(db, keysOf('a', 8))
  peer.answer(status(410))
  await deliverOnce(db)
  assert.deepEqual(await states(db), [{ state: 'waiting', n: 8 }])
  await comeBack(db)
  await deliverOnce(db)
  assert.deepEqual(await db.query('select distinct state, terminal_reason as why from outbox.deliveries'), [
    { state: 'dead', why: 'gone' },
  ])
})

/** Eight requests that are answered only after `meanwhile`. */
async function overtaken(db: TestDatabase, peer: Peer, code: number, meanwhile: () => Promise<unknown>) {
  const answer = gate()
  peer.answer(when(answer.opened, status(code)))
  await enqueue(db, keysOf(String(code), 8))
  const round = deliverOnce(db)
  await peer.untilReceived(8)
  await meanwhile()
  answer.open()
  await round
}

for (const code of [410, 401, 500])
  test(`what the old URL answered with ${code} is not held against the new one, and ends nothing`, async () => {
    const [db, peer] = [await testDatabase(), await startPeer()]
    await putClinic(db, `${peer.url}/old`)
    await overtaken(db, peer, code, () => putClinic(db, `${peer.url}/new`))
    assert.deepEqual(await endpoint(db), { state: 'open', failures: 0 })
    assert.deepEqual(await states(db), [{ state: 'waiting', n: 8 }])
    await comeBack(db)
    peer.answer(status(200))
    assert.equal((await deliverOnce(db)).delivered, 8)
  })

test('a report whose answer was lost is not sent again: rejections count once', async () => {
  const [db, peer] = [await testDatabase(), await startPeer()]
  await putClinic(db, peer.url)
  await enqueue(db, ['a'])
  peer.answer(status(401))
  const proxy = await startProxy(db.url)
  const person = await begin(db)
  await person.run(`select from outbox.endpoint for update`, [])
  const poller = testPoller({ url: proxy.url })
  const round = poller.runOnce()
  await until('the report waits', async () => (await waiting(db)).length > 0)
  // The server goes on with it, and has nobody left to tell.
  proxy.swallow()
  await person.rollback()
  const rejections = async () => (await db.query<{ n: number }>('select rejections as n from outbox.endpoint'))[0]?.n
  await until('it is counted', async () => (await rejections()) === 1)
  proxy.cut()
  await proxy.open()
  await round
  assert.equal(await rejections(), 1)
  assert.deepEqual(await states(db), [{ state: 'waiting', n: 1 }])
})

test('an event tells what became of the delivery: a rejection that the pause has spared will be tried again', async () => {
  const [db, peer] = [await testDatabase(), await startPeer()]
  await putClinic(db, peer.url)
  await enqueue(db, keysOf('a', 12))
  peer.answer(status(403))
  const poller = testPoller(db)
  const told: string[] = []
  poller.on('attempt', ({ verdict }) => told.push(verdict))
  await poller.runOnce()
  const count = (verdict: string) => told.filter((one) => one === verdict).length
  assert.deepEqual([told.length, count('dead'), count('retry')], [12, 5, 7])
  assert.deepEqual(await states(db), [
    { state: 'dead', n: 5 },
    { state: 'waiting', n: 7 },
  ])
})

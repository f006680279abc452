// A receiver that keeps its promise, written out: the key and the effect in one transaction, a known key only answered.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { deliverOnce, enqueue, putClinic } from '../support/clinic.ts'
import { testDatabase } from '../support/database.ts'
import { type Answer, reset, silence, startPeer, status } from '../support/peer.ts'
import { QUICK, startWorker } from '../support/process.ts'
import { until } from '../support/until.ts'

const db = await testDatabase()
const receiver = await testDatabase({ template: null })
await receiver.query('create table seen (key text primary key, at timestamptz not null default clock_timestamp())')
await receiver.query('create table effect (key text not null, body text not null)')
const peer = await startPeer()

/** Applies what it has not seen, then answers in its own way. */
const applying =
  (answer: Answer): Answer =>
  async (response, request, socket) => {
    const known = await receiver.sql.begin(async (tx) => {
      const fresh = await tx`insert into seen (key) values (${request.key}) on conflict do nothing returning 1`
      if (fresh.length > 0) await tx`insert into effect values (${request.key}, ${request.body.toString()})`
      return fresh.length === 0
    })
    if (known) status(200, { 'idempotent-replayed': 'true' })(response, request, socket)
    else answer(response, request, socket)
  }

const effects = (key: string) => receiver.query('select body from effect where key = $1', key)
const attempts = (key: string) =>
  db.query('select number, outcome, reason, replayed from outbox.attempts where key = $1 order by number', key)

// case C75
test('an event that is sent again after six minutes, because its answer was lost, has one business effect', async () => {
  await putClinic(db, peer.url)
  await enqueue(db, ['capture-1842'])
  peer.answer(applying(reset))
  await deliverOnce(db)
  assert.deepEqual(await attempts('capture-1842'), [
    { number: 1, outcome: 'unknown', reason: 'request_ECONNRESET', replayed: false },
  ])
  assert.equal((await effects('capture-1842')).length, 1)

  await db.age('capture-1842', '6 minutes')
  await receiver.query(`update seen set at = at - interval '6 minutes'`)
  await deliverOnce(db)
  assert.deepEqual(await attempts('capture-1842'), [
    { number: 1, outcome: 'unknown', reason: 'request_ECONNRESET', replayed: false },
    { number: 2, outcome: 'delivered', reason: 'replayed', replayed: true },
  ])
  assert.deepEqual(await effects('capture-1842'), [{ body: '{"key":"capture-1842"}' }])
  assert.equal(peer.received.length, 2)
})

test('a poller killed after the receiver applied the event and before it wrote so: one business effect', async () => {
  await enqueue(db, ['eligibility.changed:evt_01J8'])
  const key = 'eligibility.changed:evt_01J8'
  peer.answer(applying(silence))
  const killed = await startWorker(db, QUICK)
  await until('the receiver has applied it', async () => (await effects(key)).length === 1)
  killed.kill('SIGKILL')
  await killed.ended
  const next = await startWorker(db, QUICK)
  await until(
    'it is delivered',
    async () =>
      (await db.query(`select 1 from outbox.deliveries where key = $1 and state = 'delivered'`, key)).length === 1,
  )
  assert.deepEqual(await attempts(key), [
    { number: 1, outcome: 'unknown', reason: 'worker_lost', replayed: false },
    { number: 2, outcome: 'delivered', reason: 'replayed', replayed: true },
  ])
  assert.deepEqual(await effects(key), [{ body: `{"key":"${key}"}` }])
  next.kill('SIGTERM')
  assert.equal((await next.ended).code, 0)
})

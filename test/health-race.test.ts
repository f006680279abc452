// A claim that is under way while its endpoint is stopped: what it leases is not sent.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { enqueue, putClinic, testPoller } from './support/clinic.ts'
import { testDatabase } from './support/database.ts'
import { gate, startPeer, status, when } from './support/peer.ts'
import { begin, waiting } from './support/session.ts'
import { until } from './support/until.ts'

// case C59
test('what a claim leases that a 410 has overtaken goes back unsent', async () => {
  const [db, peer, answer] = [await testDatabase(), await startPeer(), gate()]
  await putClinic(db, peer.url)
  await db.query(
    `create function hold() returns trigger language plpgsql as $$ begin perform pg_advisory_xact_lock_shared(1842); return new; end $$`,
  )
  await db.query(
    'create trigger hold before update on outbox.queue for each row when (old.token is null) execute function hold()',
  )
  peer.next(when(answer.opened, status(410)))
  const poller = testPoller(db, { pollIntervalMs: 10 })
  await enqueue(db, ['first'])
  await poller.start()
  await peer.untilReceived(1)
  const session = await begin(db)
  await session.run('select pg_advisory_xact_lock(1842)', [])
  await enqueue(db, ['second'])
  await until('a claim is under way', async () => (await waiting(db)).length > 0)
  answer.open()
  const paused = 'select 1 from outbox.endpoint where paused_at is not null'
  await until('the endpoint is paused', async () => (await db.query(paused)).length === 1)
  const reasons: string[] = []
  poller.on('released', ({ reason }) => reasons.push(reason))
  await session.commit()
  await until('it goes back, or out', () => reasons.length > 0 || peer.received.length > 1)
  assert.deepEqual([peer.received.length, reasons], [1, ['endpoint_stopped']])
  assert.deepEqual(await db.query('select attempts, token from outbox.queue'), [{ attempts: 0, token: null }])
  await poller.stop()
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { enqueue, putClinic } from '../support/clinic.ts'
import { testDatabase } from '../support/database.ts'
import { gate, startPeer } from '../support/peer.ts'
import { startWorker } from '../support/process.ts'
import { until } from '../support/until.ts'

const [db, peer] = [await testDatabase(), await startPeer()]
const FLAGS = { 'sweep-interval-ms': 50, 'poll-interval-ms': 50, 'heartbeat-ms': 200 }

/** Park the only delivery of its key, as a race between two transactions could leave it. */
async function strand(key: string): Promise<void> {
  await db.sql.begin(async (tx) => {
    await tx`select outbox.enqueue('clinic', ${key}, 'eligibility.changed', '{}', ${key})`
    await tx`update outbox.queue set next_attempt_at = 'infinity' where ordering_key = ${key}`
  })
}

const received = () => peer.received.map(({ key }) => key).sort()

// case C06
test('a process killed in the middle of a sweep, its row locks held on: any poller sweeps on, and takes up the rest later', async () => {
  await putClinic(db, peer.url)
  // The sweep of the first process stops inside its statement, with the heads of both keys locked.
  await db.query(
    `create function hold() returns trigger language plpgsql as $$ begin perform pg_advisory_xact_lock_shared(1842); return new; end $$`,
  )
  await db.query(
    `create trigger hold before update on outbox.queue for each row
     when (old.ordering_key = 'stuck' and not isfinite(old.next_attempt_at) and isfinite(new.next_attempt_at)) execute function hold()`,
  )
  const [holding, held] = [gate(), gate()]
  const lock = db.sql.begin(async (tx) => {
    await tx`select pg_advisory_xact_lock(1842)`
    holding.open()
    await held.opened
  })
  await holding.opened
  await strand('beside')
  await strand('stuck')
  const killed = await startWorker(db, { ...FLAGS, name: 'killed' })
  const sweeping = () =>
    db.query<{ pid: number }>(
      `select a.pid from pg_stat_activity a join pg_locks l on l.pid = a.pid
       where a.datname = current_database() and a.application_name = 'outledger' and l.locktype = 'advisory' and not l.granted`,
    )
  const [backend] = await until('its sweep is in the middle', async () => {
    const rows = await sweeping()
    return rows.length === 1 && rows
  })
  killed.kill('SIGKILL')
  await killed.ended
  // Its heartbeat row is long dead and locked by somebody too, as if in the middle of another clean-up.
  await db.query(`update outbox.poller set beat_at = beat_at - interval '2 days'`)
  const cleaning = db.sql.begin(async (tx) => {
    await tx`select from outbox.poller for update`
    await held.opened
  })
  const other = await startWorker(db, { ...FLAGS, name: 'other' })
  await strand('free')
  await until('what nobody has locked is swept and sent', () => received().includes('free'))
  assert.deepEqual(received(), ['free'])
  assert.equal((await sweeping()).length, 1, 'the backend of the dead process still holds its rows')
  await enqueue(db, ['new'])
  await strand('later')
  await until('and so it goes on', () => peer.received.length === 3)

  await db.query('select pg_terminate_backend($1)', backend?.pid ?? null)
  held.open()
  await Promise.all([lock, cleaning])
  await until('the rest is taken up', () => peer.received.length === 5)
  assert.deepEqual(received(), ['beside', 'free', 'later', 'new', 'stuck'])
  await until('the dead one is forgotten', async () => (await db.query('select 1 from outbox.poller')).length === 1)
  other.kill('SIGTERM')
  assert.equal((await other.ended).code, 0)
  assert.deepEqual(
    other.log.filter(({ msg }) => /trouble/.test(String(msg))),
    [],
    'no statement waited for a lock',
  )
  assert.deepEqual(other.complaints, [])
})

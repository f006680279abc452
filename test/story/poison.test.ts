import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { after, test } from 'node:test'
import { enqueue, keysOf, putClinic } from '../support/clinic.ts'
import { testDatabase } from '../support/database.ts'
import { startPeer, status } from '../support/peer.ts'
import { program } from '../support/process.ts'
import { until } from '../support/until.ts'

const [db, peer] = [await testDatabase(), await startPeer()]
const POISON = 'poison'
const neighbours = keysOf('neighbour', 50)

/** The worker that a supervisor starts again whenever it has died. */
function startMortal() {
  const child = spawn(process.execPath, program('test/support/mortal-worker'), {
    env: { ...process.env, DATABASE_URL: db.url, DEADLY: POISON },
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  after(() => child.kill('SIGKILL'))
  return { child, ended: once(child, 'exit').then(([code]) => code) }
}

const leased = async () =>
  (
    await db.query<{ key: string }>(
      'select d.key from outbox.queue q join outbox.delivery d on d.id = q.delivery_id where q.next_attempt_at > clock_timestamp() and q.token is not null',
    )
  ).map(({ key }) => key)

// case C07
test('what kills its process again and again ends dead as poison; of those in flight with it none is dead, all deliver', async () => {
  await putClinic(db, peer.url, { concurrency: 512 })
  await enqueue(db, [...neighbours, POISON])
  // Twice all 51 are in flight when it ends the process; after that everybody is answered at once.
  const beside: number[] = []
  peer.answer(async (response, { key, number }) => {
    if (number > 2 && key === POISON) beside.push(peer.open - 1)
    if (number <= 2) await until('all are in flight', () => peer.received.length >= 51 * number)
    if (number > 2 || key === POISON) status(200)(response, {} as never, {} as never)
  })
  const crashes: string[][] = []
  let worker = startMortal()
  await until(
    'all have ended',
    async () => {
      if ((await db.query('select 1 from outbox.queue')).length === 0) return true
      if (worker.child.exitCode === null) return false
      crashes.push(await leased())
      // Time passes, and every lease of the dead process has run out.
      await db.query(`update outbox.queue set leased_at = leased_at - interval '1 hour', ready_at = ready_at - interval '1 hour',
      next_attempt_at = next_attempt_at - interval '1 hour' where token is not null`)
      worker = startMortal()
      return false
    },
    90_000,
  )
  worker.child.kill('SIGTERM')
  assert.equal(await worker.ended, 0)

  assert.deepEqual(
    crashes.map(({ length }) => length),
    [51, 51, 1, 1, 1, 1, 1],
    'alone, nothing else was leased when the process died',
  )
  assert.deepEqual(crashes.slice(2).flat(), Array(5).fill(POISON))
  assert.deepEqual(beside, [0, 0, 0, 0, 0], 'and no other request was open')
  assert.deepEqual(
    await db.query(
      `select key, attempts, state, certainty, terminal_reason from outbox.deliveries where state <> 'delivered'`,
    ),
    [{ key: POISON, attempts: 8, state: 'dead', certainty: 'unknown', terminal_reason: 'poison' }],
  )
  assert.deepEqual(
    await db.query(
      `select number, outcome, reason, request_sent from outbox.attempts where key = $1 order by number`,
      POISON,
    ),
    [
      ...[1, 2, 3, 4, 5, 6, 7].map((number) => ({
        number,
        outcome: 'unknown',
        reason: 'worker_lost',
        request_sent: null,
      })),
      { number: 8, outcome: 'unknown', reason: 'poison', request_sent: false },
    ],
  )
  assert.deepEqual(
    await db.query(
      `select number, outcome, count(*)::int as n from outbox.attempts where key like 'neighbour-%' group by 1, 2 order by 1`,
    ),
    [
      { number: 1, outcome: 'unknown', n: 50 },
      { number: 2, outcome: 'unknown', n: 50 },
      { number: 3, outcome: 'delivered', n: 50 },
    ],
  )
  assert.equal(peer.received.filter(({ key }) => key === POISON).length, 7, 'never sent again')
})

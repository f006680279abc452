// The loop and the retry around the database; its trouble is real: refused, cut, terminated, deadlocked.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { codeOf } from '../src/events.ts'
import { isPassing, loop, persist } from '../src/loop.ts'
import { connect } from '../src/sql/executor.ts'
import { testDatabase } from './support/database.ts'
import { gate } from './support/peer.ts'
import { startProxy } from './support/proxy.ts'
import { until } from './support/until.ts'

const db = await testDatabase()
const proxy = await startProxy(db.url)
const own = connect(proxy.url, { max: 2, deadlineMs: 1_000 })
after(() => own.close())
const never = new AbortController().signal

/** Runs `work` and tells the codes of the trouble it met on the way. */
async function persisted<T>(work: () => Promise<T>, signal = never) {
  const codes: string[] = []
  const answer = await persist(work, { signal, onTrouble: (code) => codes.push(code) })
  return { answer, codes }
}
const one = () => own.run<{ n: number }>('select 1 as n', [])

test('a statement is tried again until the database lets it through', async () => {
  proxy.refuse()
  let tries = 0
  const { answer, codes } = await persisted(async () => {
    if (tries++ === 3) await proxy.open()
    return one()
  })
  assert.deepEqual([...answer], [{ n: 1 }])
  assert.deepEqual([...new Set(codes)], ['ECONNREFUSED'])
  assert.equal(codes.length, 3)
})

test('the pauses are ours alone: the driver adds none after a refused connection', async () => {
  const patient = connect(proxy.url, { max: 1, deadlineMs: 60_000 })
  proxy.refuse()
  const since = performance.now()
  for (let tries = 0; tries < 8; tries++) await assert.rejects(patient.run('select 1', []))
  await proxy.open()
  await patient.run('select 1', [])
  // The driver's own would add up to ten seconds at least.
  assert.ok(performance.now() - since < 5_000)
  await patient.close()
})

test('a terminated connection is trouble that passes', async () => {
  let tries = 0
  const sleeping = persisted(() => own.run(`select pg_sleep(case when $1 = '0' then 60 else 0 end)`, [String(tries++)]))
  await until('it is terminated', async () => {
    const ended = await db.query(
      `select pg_terminate_backend(pid) from pg_stat_activity where query like 'select pg_sleep(case%' and pid <> pg_backend_pid()`,
    )
    return ended.length > 0
  })
  // The message of the server, or the end of the connection right behind it.
  assert.match((await sleeping).codes.join(), /^(57P01|CONNECTION_CLOSED)$/)
})

test('a black hole ends with the deadline of the statement, and the next try has a connection of its own', async () => {
  await one()
  proxy.swallow()
  let tries = 0
  const { codes } = await persisted(async () => {
    if (tries++ === 1) await proxy.open()
    return one()
  })
  assert.deepEqual(codes, ['database_timeout'])
})

test('all trouble passes but a refusal of the values', async () => {
  for (const [code, passing] of [
    ['40P01', true],
    ['40001', true],
    ['57P03', true],
    ['53300', true],
    ['08006', true],
    ['25006', true],
    ['57014', true],
    ['42703', true],
    ['XX000', false],
    ['23514', false],
    ['22021', false],
  ] as const) {
    const error = await own
      .run(`do $$ begin raise exception using errcode = '${code}', message = 'secret payload'; end $$`, [])
      .catch((raised) => raised)
    assert.equal(codeOf(error), code)
    assert.equal(isPassing(error), passing, code)
  }
  let tries = 0
  await assert.rejects(
    persisted(() => {
      tries++
      return own.run(`select 'x'::int`, [])
    }),
    (error) => codeOf(error) === '22P02',
  )
  assert.equal(tries, 1)
})

test('an answer counts, even when the signal came while it was on its way', async () => {
  const stop = new AbortController()
  const { answer } = await persisted(async () => {
    const rows = await one()
    stop.abort()
    return rows
  }, stop.signal)
  assert.deepEqual([...answer], [{ n: 1 }])
  let tries = 0
  await assert.rejects(persisted(async () => tries++, stop.signal))
  assert.equal(tries, 0, 'nothing new begins after the signal')
})

test('the signal ends the waiting between two tries', async () => {
  proxy.refuse()
  const stop = new AbortController()
  let tries = 0
  const running = persist(one, {
    signal: stop.signal,
    onTrouble: () => {
      if (++tries === 2) stop.abort()
    },
  })
  await assert.rejects(running)
  assert.equal(tries, 2)
  await proxy.open()
})

test('a round that throws is reported, and the loop goes on', async () => {
  const stop = new AbortController()
  const troubles: unknown[] = []
  let rounds = 0
  const { ended } = loop(
    async () => {
      if (++rounds === 2) throw new Error('once')
      if (rounds === 4) stop.abort()
      return 0
    },
    { signal: stop.signal, pauseMs: 1, onTrouble: (error) => troubles.push((error as Error).message) },
  )
  await ended
  assert.equal(rounds, 4)
  assert.deepEqual(troubles, ['once'])
})

test('a wake-up shortens a pause, also one that comes while a round runs', async () => {
  const stop = new AbortController()
  const inRound = gate()
  const woken = gate()
  let rounds = 0
  const { ended, wake } = loop(
    async () => {
      rounds++
      if (rounds === 1) {
        inRound.open()
        await woken.opened
      }
      if (rounds === 3) stop.abort()
      return 3_600_000
    },
    { signal: stop.signal, pauseMs: 1, onTrouble: assert.ifError },
  )
  await inRound.opened
  wake(0)
  woken.open()
  await until('the second round', () => rounds === 2)
  wake(1)
  await ended
  assert.equal(rounds, 3)
})

test('the end of a loop does not wait for its pause', async () => {
  const stop = new AbortController()
  let rounds = 0
  const { ended } = loop(async () => ++rounds * 3_600_000, {
    signal: stop.signal,
    pauseMs: 1,
    onTrouble: assert.ifError,
  })
  await until('the first round', () => rounds === 1)
  stop.abort()
  await ended
  assert.equal(rounds, 1)
})

// The database that does not answer: nobody waits for ever, and the server is not filled with our waiting.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { codeOf } from '../src/events.ts'
import { connect } from '../src/sql/executor.ts'
import { testDatabase } from './support/database.ts'
import { begin } from './support/session.ts'

const db = await testDatabase()
const own = connect(db.url, { max: 2, deadlineMs: 300 })
after(() => own.close())

const backends = async () => {
  const [row] = await db.query(
    `select count(*)::int as n from pg_stat_activity where datname = current_database() and application_name = 'outledger'`,
  )
  return row?.n as number
}

test('a statement past its deadline is cancelled on the server, and its connection goes on', async () => {
  const session = await begin(db)
  await session.run('lock table outbox.queue in access exclusive mode', [])
  for (let tries = 0; tries < 6; tries++) {
    await assert.rejects(own.run('select from outbox.queue', []), (error) => codeOf(error) === 'database_timeout')
    assert.ok((await backends()) <= 2, 'no backend is left waiting')
  }
  await session.commit()
  assert.equal((await own.run<{ one: number }>('select 1 as one', []))[0]?.one, 1)
})

test('a server that is no longer the primary is left for a new connection', async () => {
  await own.run('select 1', [])
  const pid = async () => (await own.run<{ pid: number }>('select pg_backend_pid() as pid', []))[0]?.pid
  const before = new Set([await pid(), await pid(), await pid()])
  const failing = `do $$ begin raise exception using errcode = '25006'; end $$`
  await assert.rejects(own.run(failing, []), (error) => codeOf(error) === '25006')
  assert.ok(!before.has(await pid()))
})

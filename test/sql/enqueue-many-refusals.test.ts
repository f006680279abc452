import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EnqueueRow } from '../../src/sql/enqueue.ts'
import { enqueueMany } from '../../src/sql/enqueue-many.ts'
import { testDatabase } from '../support/database.ts'
import { addEndpoint, message } from '../support/ledger.ts'

const db = await testDatabase()
await addEndpoint(db)
const of = (key: string, more: Partial<EnqueueRow> = {}) => message(key, more)

const call = (values: string) => db.sql.unsafe(`select * from outbox.enqueue_many(${values})`)

test('psql may leave out what it does not need; arrays of other lengths or forms are refused', async () => {
  const name = 'clinic'
  const rows = await call(`array['${name}','${name}'], array['psql-1','psql-2'], array['t','t'], array['{}','[]']`)
  assert.deepEqual(
    [...rows].map(({ number, inserted }) => [number, inserted]),
    [
      [1, true],
      [2, true],
    ],
  )
  assert.deepEqual([...(await call(`'{}', '{}', '{}', '{}'`))], [])
  for (const values of [
    `array['${name}'], array['a','b'], array['t','t'], array['{}','{}']`,
    `array['${name}'], array['a'], array['t'], array['{}'], p_traceparents => '{}'`,
    `array['${name}'], '[2:2]={a}', array['t'], array['{}']`,
    `array['${name}'], '{{a}}', array['t'], array['{}']`,
    `array['${name}'], null, array['t'], array['{}']`,
  ])
    await assert.rejects(
      call(values),
      { code: '22023', message: /^outledger: messages must be arrays of one length/ },
      values,
    )
})

// case C47
test('one wrong message fails the whole call, by its number, before anything is written', async () => {
  for (const [given, message, column] of [
    [{ key: 'a b' }, /^outledger: message 2: key is 3 bytes long/, 'key'],
    [{ endpoint: 'nowhere' }, /^outledger: message 2: endpoint 'nowhere' does not exist/, 'endpoint'],
    [{ payload: '{"ssn":SECRET}' }, /^outledger: message 2: payload of 14 bytes is not valid JSON$/, 'payload'],
    [{ notBefore: 'soon' }, /^outledger: message 2: not_before must be a timestamp/, 'not_before'],
  ] as const)
    await assert.rejects(enqueueMany(db, [of('bad-1'), of('bad-2', given), of('bad-3', given)]), (error: object) => {
      assert.doesNotMatch(JSON.stringify(error), /SECRET/)
      assert.deepEqual({ ...error, message: 0 }, { ...error, message: 0, code: '22023', column_name: column })
      assert.match((error as Error).message, message)
      return true
    })
  assert.deepEqual(await db.query(`select from outbox.delivery where key like 'bad-%'`), [])
})

test('the checks of a message stand in one function that nobody else may call', async () => {
  const rows = await db.query<{ name: string; checks: boolean; open: boolean; definer: boolean }>(
    `select proname::text as name, prosrc like '%outbox.check_message(%' as checks, prosrc like '%262144%' as limits,
            has_function_privilege('pg_monitor', oid, 'execute') as open, prosecdef as definer
     from pg_proc where pronamespace = 'outbox'::regnamespace and proname like any (array['enqueue%', 'check_message']) order by 1`,
  )
  assert.deepEqual(rows, [
    { name: 'check_message', checks: false, limits: true, open: false, definer: false },
    { name: 'enqueue', checks: true, limits: false, open: false, definer: true },
    { name: 'enqueue_many', checks: true, limits: false, open: false, definer: true },
  ])
})

import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { drizzle } from 'drizzle-orm/postgres-js'
import postgres from 'postgres'
import { type Handle, outbox } from '../src/index.ts'
import { anyExecutor } from '../src/transaction.ts'
import { testDatabase } from './support/database.ts'
import { addEndpoint } from './support/ledger.ts'

const db = await testDatabase()
await addEndpoint(db)
const client = postgres(db.url, { max: 2, fetch_types: false, onnotice: () => {} })
after(() => client.end({ timeout: 1 }))
const orm = drizzle(client)

const event = (key: string) => ({ key, endpoint: 'clinic', type: 't', payload: {} })
const keys = async () =>
  (await db.query<{ key: string }>('select key from outbox.delivery order by id')).map(({ key }) => key)

const ROOTS: [what: string, handle: Handle][] = [
  ['the client of postgres.js', db.sql],
  ['the db of drizzle', orm],
  ['an executor over a client', anyExecutor(db.sql)],
]

const STRANGERS: [what: string, handle: unknown][] = [
  ['some pool', { connect() {}, query() {}, end() {} }],
  ['the model of an ORM', { create() {}, findMany() {}, query() {} }],
  ['a query builder', { select() {}, insert() {}, transaction() {} }],
  ['a plain object', {}],
  ['an array', []],
  ['null', null],
  ['undefined', undefined],
  ['a URL', db.url],
  ['a function', () => {}],
  ['a number', 1842],
]

// case C42
test('enqueue refuses a client that is not in a transaction, and names the way out', async () => {
  for (const [what, handle] of ROOTS) {
    await assert.rejects(
      outbox.enqueue(handle, event('refused')),
      {
        name: 'OutledgerError',
        code: 'not_a_transaction',
        message: /^enqueue needs the transaction of the business write, .+; call enqueueStandalone/,
      },
      what,
    )
  }
  assert.deepEqual(await keys(), [])
})

// case C42
test('what is no client at all is refused by both', async () => {
  for (const [what, handle] of STRANGERS) {
    for (const enqueue of [outbox.enqueue, outbox.enqueueStandalone])
      await assert.rejects(
        enqueue(handle as Handle, event('refused')),
        {
          code: 'unknown_client',
          message:
            /^this is no handle of drizzle, postgres\.js, node-postgres, kysely or Prisma; for any other client pass \{ run\(text, values\) \}/,
        },
        what,
      )
  }
  assert.deepEqual(await keys(), [])
})

// case C42
test('a run that resolves to something else than rows is told so', async () => {
  for (const answer of [undefined, { rows: [{ id: '1' }] }, 1, [[{ id: '1' }], 1], [null]]) {
    const run = { run: async () => answer } as unknown as Handle
    for (const enqueue of [outbox.enqueue, outbox.enqueueStandalone])
      await assert.rejects(enqueue(run, event('no-rows')), {
        code: 'unknown_client',
        message: /must resolve to the rows, an array of objects$/,
      })
  }
})

test('enqueueStandalone takes the client itself, and writes at once', async () => {
  for (const [what, handle] of ROOTS)
    assert.equal((await outbox.enqueueStandalone(handle, event(what.replaceAll(' ', '-')))).inserted, true)
  assert.deepEqual(
    await keys(),
    ROOTS.map(([what]) => what.replaceAll(' ', '-')),
  )
  await db.query('truncate outbox.delivery, outbox.queue')
})

test('statements go through drizzle with their values as they are', async () => {
  const value = `'; $1 $$ "x" \\ %s :a ? é`
  const rows = await anyExecutor(orm).run(
    'select $2::text as b, $1::text as a, $2::text = $2 as same, $3::text as nothing',
    ['first', value, null],
  )
  assert.deepEqual(rows, [{ b: value, a: 'first', same: true, nothing: null }])
})

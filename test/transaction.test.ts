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
  ['a pool', { connect() {}, query() {}, end() {} }],
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
        message: /the tx of db\.transaction or sql\.begin.*call enqueueStandalone/,
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
        { code: 'unknown_client', message: /no handle of drizzle \(postgres-js\) or postgres\.js/ },
        what,
      )
  }
  assert.deepEqual(await keys(), [])
})

// case C42
test('enqueueStandalone takes the client itself, and writes at once', async () => {
  for (const [what, handle] of ROOTS)
    assert.equal((await outbox.enqueueStandalone(handle, event(what.replaceAll(' ', '-')))).inserted, true)
  assert.deepEqual(
    await keys(),
    ROOTS.map(([what]) => what.replaceAll(' ', '-')),
  )
  await db.query('truncate outbox.delivery, outbox.queue')
})

test('enqueue takes the transaction of either client, and goes with it', async () => {
  await db.sql.begin((tx) => outbox.enqueue(tx, event('postgres.js')))
  await orm.transaction((tx) => outbox.enqueue(tx, event('drizzle')))
  const undo = new Error('undo')
  await assert.rejects(
    db.sql.begin(async (tx) => {
      await outbox.enqueue(tx, event('postgres.js-undone'))
      throw undo
    }),
    undo,
  )
  await assert.rejects(
    orm.transaction(async (tx) => {
      await outbox.enqueue(tx, event('drizzle-undone'))
      throw undo
    }),
    undo,
  )
  await assert.rejects(
    orm.transaction(async (tx) => {
      await outbox.enqueue(tx, event('drizzle-rollback'))
      tx.rollback()
    }),
    /Rollback/,
  )
  assert.deepEqual(await keys(), ['postgres.js', 'drizzle'])
  await db.query('truncate outbox.delivery, outbox.queue')
})

test('in a savepoint an event goes with the savepoint, and the transaction goes on', async () => {
  const undo = async (): Promise<never> => {
    throw new Error('undo')
  }
  await db.sql.begin(async (tx) => {
    await outbox.enqueue(tx, event('outer'))
    await tx.savepoint((inner) => outbox.enqueue(inner, event('kept')))
    await assert.rejects(
      tx.savepoint((inner) => outbox.enqueue(inner, event('undone')).then(undo)),
      /undo/,
    )
    await outbox.enqueue(tx, event('outer-after'))
  })
  await orm.transaction(async (tx) => {
    await outbox.enqueue(tx, event('drizzle-outer'))
    await tx.transaction((inner) => outbox.enqueue(inner, event('drizzle-kept')))
    await assert.rejects(
      tx.transaction((inner) => outbox.enqueue(inner, event('drizzle-undone')).then(undo)),
      /undo/,
    )
    await outbox.enqueue(tx, event('drizzle-outer-after'))
  })
  assert.deepEqual(await keys(), [
    'outer',
    'kept',
    'outer-after',
    'drizzle-outer',
    'drizzle-kept',
    'drizzle-outer-after',
  ])
  await db.query('truncate outbox.delivery, outbox.queue')
})

test('a refusal of the database inside a savepoint leaves the transaction usable', async () => {
  const unknown = { ...event('lost'), endpoint: 'nowhere' }
  await db.sql.begin(async (tx) => {
    await assert.rejects(
      tx.savepoint((inner) => outbox.enqueue(inner, unknown)),
      { code: 'unknown_endpoint' },
    )
    await outbox.enqueue(tx, event('postgres.js'))
  })
  await orm.transaction(async (tx) => {
    await assert.rejects(
      tx.transaction((inner) => outbox.enqueue(inner, unknown)),
      { code: 'unknown_endpoint' },
    )
    await outbox.enqueue(tx, event('drizzle'))
  })
  assert.deepEqual(await keys(), ['postgres.js', 'drizzle'])
})

test('statements go through drizzle with their values as they are', async () => {
  const value = `'; $1 $$ "x" \\ %s :a ? é`
  const rows = await anyExecutor(orm).run(
    'select $2::text as b, $1::text as a, $2::text = $2 as same, $3::text as nothing',
    ['first', value, null],
  )
  assert.deepEqual(rows, [{ b: value, a: 'first', same: true, nothing: null }])
})

// The tests that an app writes for its own events, as the README shows them.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { sql } from 'drizzle-orm'
import { drizzle, type PostgresJsDatabase } from 'drizzle-orm/postgres-js'
import postgres from 'postgres'
import { createPoller, outbox, putEndpoint } from '../../src/index.ts'
import { drain, enqueued, startReceiver } from '../../src/testing.ts'
import { testDatabase } from '../support/database.ts'

// The app.
type Transaction = Parameters<Parameters<PostgresJsDatabase['transaction']>[0]>[0]

async function capture(tx: Transaction, id: number, cents: number) {
  await tx.execute(sql`insert into payment (id, cents) values (${id}, ${cents})`)
  const payload = { payment: id, cents }
  await outbox.enqueue(tx, { key: `capture-${id}`, endpoint: 'clinic', type: 'payment.captured', payload })
}

// Its tests: a database that has been migrated, and the app's own tables.
const { url: databaseUrl, query } = await testDatabase()
await query('create table payment (id int primary key, cents int not null)')
const client = postgres(databaseUrl)
const db = drizzle(client)
const receiver = await startReceiver()
const { resolveSecret } = receiver
await putEndpoint(db, receiver.endpoint('clinic'), { resolve: resolveSecret })
const poller = createPoller({ databaseUrl, resolveSecret })
after(() => Promise.all([poller.stop(), receiver.close(), client.end()]))

test('a captured payment is announced, and nothing stays in the database', async () => {
  const rollback = db.transaction(async (tx) => {
    await capture(tx, 1842, 9900)
    const [event] = await enqueued(tx, { type: 'payment.captured' })
    assert.equal(event?.key, 'capture-1842')
    assert.deepEqual(event?.payload, { payment: 1842, cents: 9900 })
    tx.rollback()
  })
  await assert.rejects(rollback, /Rollback/)
  assert.deepEqual(await enqueued(db), [])
})

test('the clinic hears of a payment once, though its first answer is lost', async () => {
  await db.transaction((tx) => capture(tx, 1843, 500))
  receiver.answerOnce('lost')
  assert.equal((await drain(poller)).retry, 1) // five minutes begin
  assert.equal((await drain(poller, { retries: true })).delivered, 1) // and have passed
  assert.deepEqual(
    receiver.requests.map(({ key, attempt }) => [key, attempt]),
    [
      ['capture-1843', 1],
      ['capture-1843', 2],
    ],
  )
  assert.deepEqual(receiver.effects, ['capture-1843'])
})

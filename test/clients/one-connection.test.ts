// What needs more than one statement, over each client with a pool of a single connection: nothing may wait for a second one.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { drizzle } from 'drizzle-orm/node-postgres'
import { CamelCasePlugin, Kysely, PostgresDialect } from 'kysely'
import pg from 'pg'
import postgres from 'postgres'
import { type Handle, outbox, reconcileOnce } from '../../src/index.ts'
import { enqueued } from '../../src/testing.ts'
import { testDatabase } from '../support/database.ts'
import { announcement, counts, payments } from '../support/payments.ts'

const db = await testDatabase()
const { captured, fresh, pay } = await payments(db)
// The database is dropped before the pools are closed, and an idle connection of node-postgres says so.
const pool = () => new pg.Pool({ connectionString: db.url, max: 1 }).on('error', () => {})
const [plain, ofKysely] = [pool(), pool()]
// It renames what comes back, ours too.
const kysely = new Kysely<object>({
  dialect: new PostgresDialect({ pool: ofKysely }),
  plugins: [new CamelCasePlugin()],
})
const orm = drizzle(plain)
const sql = postgres(db.url, { max: 1, fetch_types: false, onnotice: () => {} })
after(() => Promise.all([kysely.destroy(), plain.end(), sql.end({ timeout: 1 })]))

const undone = new Error('undone')
const undo = (work: (tx: Handle) => Promise<unknown>) => async (tx: Handle) => {
  await work(tx)
  throw undone
}

type Work = (tx: Handle) => Promise<unknown>
const CLIENTS: Record<string, [client: Handle, transaction: (work: Work) => Promise<unknown>]> = {
  'postgres.js': [sql, (work) => sql.begin(work)],
  'drizzle over node-postgres': [orm, (work) => orm.transaction(work)],
  kysely: [kysely, (work) => kysely.transaction().execute(work)],
  'node-postgres': [
    plain,
    async (work) => {
      const client = await plain.connect()
      await client.query('begin')
      try {
        return await work(client)
      } finally {
        await client.query('rollback')
        client.release()
      }
    },
  ],
}

for (const [name, [client, transaction]] of Object.entries(CLIENTS))
  test(`a reconciliation reads, looks and writes; enqueued tells a transaction from its database (${name})`, async () => {
    await fresh()
    await pay(1, 1_200)
    await outbox.enqueueStandalone(client, announcement({ id: 7, cents: 700 }))
    assert.deepEqual(counts(await reconcileOnce(client, captured)), [1_200, 1_199, 1_199, 0])
    const inside = undo(async (tx) => {
      await outbox.enqueue(tx, announcement({ id: 9_999, cents: 1 }))
      assert.deepEqual(
        (await enqueued(tx)).map(({ key, payload }) => [key, payload]),
        [['capture-9999', { payment: 9_999, cents: 1 }]],
      )
    })
    await assert.rejects(transaction(inside), undone)
    assert.equal((await enqueued(client)).length, 1_200)
    assert.equal((await enqueued(client, { key: 'capture-1200' }))[0]?.payloadText, '{"payment":1200,"cents":120000}')
  })

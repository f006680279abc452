import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { drizzle } from 'drizzle-orm/postgres-js'
import postgres from 'postgres'
import { outbox } from '../src/index.ts'
import { testDatabase } from './support/database.ts'
import { addEndpoint } from './support/ledger.ts'

const db = await testDatabase()
await addEndpoint(db)
const client = postgres(db.url, { max: 2, fetch_types: false, onnotice: () => {} })
after(() => client.end({ timeout: 1 }))
const orm = drizzle(client)

const GOOD = { key: 'k', endpoint: 'clinic', type: 't', payload: {} }

/** The same in a transaction of each client. */
const CLIENTS: Record<
  string,
  (work: (enqueue: (message: object) => Promise<outbox.EnqueueResult>) => Promise<unknown>) => Promise<unknown>
> = {
  'postgres.js': (work) => db.sql.begin((tx) => work((message) => outbox.enqueue(tx, message as outbox.Message))),
  drizzle: (work) => orm.transaction((tx) => work((message) => outbox.enqueue(tx, message as outbox.Message))),
}

for (const [name, transaction] of Object.entries(CLIENTS)) {
  test(`every field is stored as it was given (${name})`, async () => {
    const key = `${name}:full`
    const traceparent = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`
    const more = { orderingKey: 'patient 1842 ü', correlationId: 'corr-1', traceparent, retentionDays: 7 }
    const text = ' {"raw":1e2, "b":"\\u0000"} '
    await transaction(async (enqueue) => {
      await enqueue({
        key,
        endpoint: 'clinic',
        type: 'a.b',
        payload: text,
        ...more,
        notBefore: new Date('2001-02-03T04:05:06.789Z'),
      })
      await enqueue({ key: `${key}:ref`, endpoint: 'clinic', type: 'a.b', payloadRef: 's3://ü', delayMs: 3_600_000 })
      await enqueue({
        key: `${key}:text`,
        endpoint: 'clinic',
        type: 'a.b',
        payload: ['x'],
        notBefore: `${new Date().getUTCFullYear() + 1}-01-01T00:00:00+02:00`,
      })
    })
    const rows = await db.query(
      `select type, ordering_key, payload::text as payload, payload_ref, correlation_id, traceparent, retention_days,
              case when scheduled_at = discovered_at then 'now' when scheduled_at = discovered_at + interval '1 hour' then 'in an hour'
                   else to_char(scheduled_at at time zone 'UTC', 'MM-DD HH24:MI') end as due
       from outbox.delivery where key like $1 order by id`,
      `${key}%`,
    )
    const none = {
      ordering_key: null,
      payload: null,
      payload_ref: null,
      correlation_id: null,
      traceparent: null,
      retention_days: null,
    }
    assert.deepEqual(rows, [
      {
        ...none,
        type: 'a.b',
        payload: text,
        ordering_key: more.orderingKey,
        correlation_id: 'corr-1',
        traceparent,
        retention_days: 7,
        due: 'now',
      },
      { ...none, type: 'a.b', payload_ref: 's3://ü', due: 'in an hour' },
      { ...none, type: 'a.b', payload: '["x"]', due: '12-31 22:00' },
    ])
  })
}

test('without the schema the error says what to run', async () => {
  const empty = await testDatabase({ template: null })
  const missing = { code: 'schema_missing', message: /run "outledger migrate"/ }
  await assert.rejects(
    empty.sql.begin((tx) => outbox.enqueue(tx, GOOD)),
    missing,
  )
  await empty.query('create schema outbox')
  await assert.rejects(outbox.enqueueStandalone(empty.sql, GOOD), missing)
})

// Business rows against the ledger: what is missing is enqueued once, what disagrees is reported, and each run is on record.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { drizzle } from 'drizzle-orm/postgres-js'
import postgres from 'postgres'
import { defineReconciliation, type Handle, outbox, reconcileOnce } from '../src/index.ts'
import { settle } from '../src/sql/settle.ts'
import { enqueued } from '../src/testing.ts'
import { testDatabase } from './support/database.ts'
import { add, lease, result } from './support/ledger.ts'
import { announcement, counts, payments } from './support/payments.ts'
import { begin } from './support/session.ts'

const db = await testDatabase()
const { clinic, captured, fresh, pay, keysBy } = await payments(db)
const client = postgres(db.url, { max: 2, fetch_types: false, onnotice: () => {} })
after(() => client.end({ timeout: 1 }))

const recorded = (id: string) =>
  db.query(
    `select name, checked::int, missing::int, enqueued::int, mismatched::int, overdue::int, error, finished_at >= started_at as ended
     from outbox.reconciliation where id = $1::bigint`,
    id,
  )
for (const [name, handle] of Object.entries({ 'postgres.js': db.sql, drizzle: drizzle(client) } satisfies Record<
  string,
  Handle
>)) {
  test(`what has no delivery is enqueued once, as the app would have, and is on record (${name})`, async () => {
    await fresh()
    await pay(1, 4)
    await db.sql.begin(async (tx) => {
      for (const id of [1, 3]) await outbox.enqueue(tx, announcement({ id, cents: 100 * id }))
    })
    const run = await reconcileOnce(handle, 'captured-payments')
    assert.deepEqual(counts(run), [4, 2, 2, 0])
    assert.deepEqual(await keysBy('captured-payments'), ['capture-2', 'capture-4'])
    assert.deepEqual((await enqueued(db.sql, { key: 'capture-4' }))[0]?.payloadText, '{"payment":4,"cents":400}')
    assert.deepEqual(await db.query('select why_not_yet from outbox.deliveries where state <> $1', 'waiting'), [])
    const again = await reconcileOnce(handle, captured)
    assert.deepEqual(counts(again), [4, 0, 0, 0])
    assert.deepEqual(
      [...(await recorded(run.id)), ...(await recorded(again.id))],
      [2, 0].map((n) => ({
        ...{
          name: 'captured-payments',
          checked: 4,
          missing: n,
          enqueued: n,
          mismatched: 0,
          overdue: 0,
          error: null,
          ended: true,
        },
      })),
    )
  })
}

test('a key that was purged is not missing; when its tombstone has ended, it is', async () => {
  await fresh()
  await pay(1)
  await db.query(
    `insert into outbox.tombstone (key_sha256, delivery_id, ended_at, delete_after, attempts, ending, certainty)
     values (sha256(convert_to('capture-1', 'UTF8')), 0, now(), now() + interval '1 day', 1, 'delivered', 'delivered')`,
  )
  assert.deepEqual(counts(await reconcileOnce(db, captured)), [1, 0, 0, 0])
  await db.query(`update outbox.tombstone set delete_after = now() - interval '1 day'`)
  assert.deepEqual(counts(await reconcileOnce(db, captured)), [1, 1, 1, 0])
})

test('what has ended is not missing, whatever became of it', async () => {
  await fresh()
  await pay(1, 2)
  for (const id of [1, 2])
    await add(db, `capture-${id}`, { type: 'payment.captured', payload: `{"payment":${id},"cents":${100 * id}}` })
  const [first, second] = await lease(db, clinic)
  assert.ok(first && second)
  const dead = { outcome: 'rejected', verdict: 'dead', reason: 'gone', endReason: 'gone', httpStatus: 410 } as const
  await settle(db, [result(first), result(second, dead)], 'p-1')
  assert.deepEqual(counts(await reconcileOnce(db, captured)), [2, 0, 0, 0])
})

test('a delivery that says something else is reported, named, and left as it is', async () => {
  await fresh()
  await pay(1, 5)
  const row = (id: number, more: object) =>
    add(db, `capture-${id}`, { type: 'payment.captured', payload: `{"payment":${id},"cents":${100 * id}}`, ...more })
  await row(1, {})
  await row(2, { endpoint: 'ledger' })
  await row(3, { type: 'payment.refunded' })
  await row(4, { payload: '{"payment":4,"cents":401}' })
  await row(5, { payload: null, payloadRef: 's3://5' })
  const before = await db.query('select * from outbox.delivery order by id')
  const run = await reconcileOnce(db, captured)
  assert.deepEqual(counts(run), [5, 0, 0, 4])
  assert.deepEqual(run.mismatches, [
    { key: 'capture-2', what: 'endpoint' },
    { key: 'capture-3', what: 'type' },
    { key: 'capture-4', what: 'payload' },
    { key: 'capture-5', what: 'payload' },
  ])
  assert.deepEqual(await db.query('select * from outbox.delivery order by id'), before)
})

test('a run that fails has its code on record and no data; what it had done stays, and the next one goes on', async () => {
  await fresh()
  await pay(1, 1_500)
  let broken = true
  const definition = defineReconciliation<{ id: number; cents: number }>({
    ...captured,
    name: 'half-way',
    toMessage: (row) => {
      if (broken && row.id === 1_200) throw Object.assign(new Error('card 4111'), { code: 'E_CARD' })
      return announcement(row)
    },
  })
  await assert.rejects(reconcileOnce(db, definition), /card 4111/)
  const [{ id } = { id: '' }] = await db.query<{ id: string }>('select max(id)::text as id from outbox.reconciliation')
  assert.deepEqual(await recorded(id), [
    {
      name: 'half-way',
      checked: 1_000,
      missing: 1_000,
      enqueued: 1_000,
      mismatched: 0,
      overdue: 0,
      error: 'E_CARD',
      ended: true,
    },
  ])
  broken = false
  assert.deepEqual(counts(await reconcileOnce(db, definition)), [1_500, 500, 500, 0])
  assert.equal((await keysBy('half-way')).length, 1_500)
})

test('a message that is wrong names its row, and an endpoint that is not there its name', async () => {
  await fresh()
  await pay(1, 3)
  const bad = (name: string, more: (id: number) => object) =>
    defineReconciliation<{ id: number; cents: number }>({
      ...captured,
      name,
      toMessage: (row) => ({ ...announcement(row), ...more(row.id) }),
    })
  await assert.rejects(
    reconcileOnce(
      db,
      bad('no-key', (id) => (id === 2 ? { key: '' } : {})),
    ),
    {
      ...{ code: 'invalid_message', message: 'row 2: key is 0 bytes long; it must be 1 to 255 of A-Z a-z 0-9 . _ : -' },
    },
  )
  await assert.rejects(
    reconcileOnce(
      db,
      bad('nowhere', () => ({ endpoint: 'nowhere' })),
    ),
    { code: 'unknown_endpoint', message: /'nowhere' does not exist/ },
  )
  const promised = { ...captured, name: 'promised', toMessage: async () => announcement({ id: 1, cents: 1 }) }
  await assert.rejects(reconcileOnce(db, defineReconciliation(promised as never)), {
    ...{ code: 'invalid_message', message: 'toMessage returned a promise; it must return the message itself' },
  })
  assert.deepEqual(await db.query('select name, error from outbox.reconciliation order by id desc limit 3'), [
    { name: 'promised', error: 'invalid_message' },
    { name: 'nowhere', error: 'unknown_endpoint' },
    { name: 'no-key', error: 'invalid_message' },
  ])
})

test('more mismatches than anybody reads are counted, and a hundred are named', async () => {
  await fresh()
  await pay(1, 150)
  await db.query(
    `select outbox.enqueue('clinic', 'capture-' || i, 'payment.captured', '{}') from generate_series(1, 150) i`,
  )
  const run = await reconcileOnce(db, captured)
  assert.deepEqual([counts(run), run.mismatches.length], [[150, 0, 0, 150], 100])
})

test('payloads that are too large for one call together are written in several', async () => {
  await fresh()
  const text = 'x'.repeat(200_000)
  const large = defineReconciliation<number>({
    name: 'large',
    expected: () => Array.from({ length: 90 }, (_, i) => i),
    toMessage: (i) => ({ key: `large-${i}`, endpoint: 'clinic', type: 't', payload: { text } }),
  })
  assert.deepEqual(counts(await reconcileOnce(db, large)), [90, 90, 90, 0])
  assert.deepEqual(counts(await reconcileOnce(db, large)), [90, 0, 0, 0])
})

test('in a transaction of the app a run goes with it, and its failure is told even where it cannot be recorded', async () => {
  await fresh()
  await pay(1, 2)
  const [undone, failed] = [await begin(db), await begin(db)]
  assert.deepEqual(counts(await reconcileOnce(undone, captured)), [2, 2, 2, 0])
  await undone.rollback()
  assert.deepEqual(await keysBy('captured-payments'), [])
  const broken = defineReconciliation({ ...captured, name: 'broken', expected: 'select 1 / 0 as id' })
  await assert.rejects(reconcileOnce(failed, broken), { code: '22012' })
  await failed.rollback()
})

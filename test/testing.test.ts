// outledger/testing: what was enqueued, rounds until nothing is due, and a receiver that verifies and records.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { drizzle } from 'drizzle-orm/postgres-js'
import postgres from 'postgres'
import { createPoller, type Handle, type Message, outbox, putEndpoint } from '../src/index.ts'
import { drain, enqueued, startReceiver } from '../src/testing.ts'
import { testDatabase } from './support/database.ts'
import { begin } from './support/session.ts'

const db = await testDatabase()
const client = postgres(db.url, { max: 2, fetch_types: false, onnotice: () => {} })
after(() => client.end({ timeout: 1 }))
const orm = drizzle(client)
const receiver = await startReceiver()
after(() => receiver.close())
const resolve = { resolve: receiver.resolveSecret }
const clinic = await putEndpoint(db.sql, receiver.endpoint('clinic'), resolve)
await putEndpoint(db.sql, receiver.endpoint('ledger'), resolve)

const event = (key: string, more: Partial<Message> = {}): Message => ({
  ...{ key, endpoint: 'clinic', type: 'payment.captured', payload: { key } },
  ...more,
})
const write = (...messages: Message[]) =>
  db.sql.begin(async (tx) => {
    for (const message of messages) await outbox.enqueue(tx, message)
  })

/** A poller of its own for one test, gone afterwards, and the receiver as new. */
async function withPoller<T>(work: (poller: ReturnType<typeof createPoller>) => Promise<T>): Promise<T> {
  receiver.reset()
  await db.query('truncate outbox.delivery, outbox.queue, outbox.receipt, outbox.attempt')
  const poller = createPoller({ databaseUrl: db.url, resolveSecret: receiver.resolveSecret })
  return work(poller).finally(() => poller.stop())
}

const undone = new Error('undone')
const rolledBack = {
  'postgres.js': (work: (tx: Handle) => Promise<unknown>) =>
    assert.rejects(
      db.sql.begin((tx) =>
        work(tx).then(() => {
          throw undone
        }),
      ),
      undone,
    ),
  drizzle: (work: (tx: Handle) => Promise<unknown>) =>
    assert.rejects(
      orm.transaction((tx) =>
        work(tx).then(() => {
          throw undone
        }),
      ),
      undone,
    ),
}

for (const [name, transaction] of Object.entries(rolledBack)) {
  test(`enqueued tells what a transaction has written, and what is rolled back stays unwritten (${name})`, async () => {
    const seen: unknown[] = []
    await outbox.enqueueStandalone(db.sql, event(`${name}:before`))
    await transaction(async (tx) => {
      assert.deepEqual(await enqueued(tx), [], 'nothing yet, whatever the database holds')
      const full = { orderingKey: 'patient 1842', correlationId: 'corr-1', notBefore: '2100-01-01T00:00:00Z' }
      const text = ' {"b":1e2,"a":[]} '
      await outbox.enqueue(tx, event(`${name}:1`, { payload: text, notBefore: new Date(0) }))
      await outbox.enqueueStandalone(db.sql, event(`${name}:meanwhile`))
      await outbox.enqueue(
        tx,
        event(`${name}:0`, { endpoint: 'ledger', type: 'payment.refunded', ...full, notBefore: undefined }),
      )
      await outbox.enqueue(tx, event(`${name}:2`, { payload: undefined, payloadRef: 's3://x' }))
      const all = await enqueued(tx)
      assert.deepEqual(
        all.map(({ key }) => key),
        [`${name}:1`, `${name}:0`, `${name}:2`],
        'in order, and only its own',
      )
      const { scheduledAt, ...first } = all[0] as (typeof all)[number]
      assert.match(scheduledAt, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/)
      assert.deepEqual(first, {
        key: `${name}:1`,
        endpoint: 'clinic',
        type: 'payment.captured',
        payload: { b: 100, a: [] },
        payloadText: text,
        payloadRef: null,
        orderingKey: null,
        correlationId: null,
      })
      assert.deepEqual([all[1]?.orderingKey, all[1]?.correlationId], ['patient 1842', 'corr-1'])
      assert.deepEqual([all[2]?.payload, all[2]?.payloadText, all[2]?.payloadRef], [undefined, null, 's3://x'])
      for (const filter of [{ type: 'payment.refunded' }, { endpoint: 'ledger' }, { key: `${name}:0` }])
        assert.deepEqual(
          (await enqueued(tx, filter)).map(({ key }) => key),
          [`${name}:0`],
        )
      assert.deepEqual(await enqueued(tx, { type: 'payment.refunded', endpoint: 'clinic' }), [])
      seen.push(...all)
    })
    assert.equal(seen.length, 3)
    const left = (await enqueued(db.sql)).map(({ key }) => key)
    assert.deepEqual(
      left.filter((key) => key.startsWith(name)),
      [`${name}:before`, `${name}:meanwhile`],
    )
  })
}

test('enqueued sees into savepoints: what was kept, not what was undone', async () => {
  await rolledBack['postgres.js'](async (tx) => {
    const { savepoint } = tx as unknown as postgres.TransactionSql
    await savepoint((inner) => outbox.enqueue(inner, event('kept')))
    await assert.rejects(
      savepoint((inner) =>
        outbox.enqueue(inner, event('dropped')).then(() => {
          throw undone
        }),
      ),
      undone,
    )
    assert.deepEqual(
      (await enqueued(tx)).map(({ key }) => key),
      ['kept'],
    )
  })
})

test('drain delivers what is due, in as many rounds as it takes, and counts it', () =>
  withPoller(async (poller) => {
    await write(
      ...Array.from({ length: 100 }, (_, i) => event(`many-${i}`)),
      ...['a', 'b', 'c'].map((key) => event(`ordered-${key}`, { orderingKey: 'patient 1842' })),
      event('next-week', { delayMs: 604_800_000 }),
    )
    const { rounds, ...counts } = await drain(poller)
    assert.ok(rounds > 1)
    assert.deepEqual(counts, { claimed: 103, delivered: 103, retry: 0, dead: 0, block: 0, fenced: 0, released: 0 })
    assert.equal(receiver.effects.length, 103)
    assert.deepEqual(await db.query('select key, attempts from outbox.deliveries where state = $1', 'waiting'), [
      { key: 'next-week', attempts: 0 },
    ])
    assert.equal((await drain(poller)).claimed, 0)
    assert.equal((await drain(poller, { scheduled: true })).delivered, 1)
    assert.deepEqual(receiver.effects.at(-1), 'next-week')
  }))

test('a retry is not due until drain is told to pull it near; then all end, however many it takes', () =>
  withPoller(async (poller) => {
    await putEndpoint(db.sql, { name: 'ledger', maxAttempts: 3 }, resolve)
    await write(event('twice'), event('thrice', { endpoint: 'ledger' }), event('tomorrow', { delayMs: 86_400_000 }))
    receiver.answer(({ key, attempt }) => (key === 'twice' && attempt === 2 ? 200 : 503))
    const first = await drain(poller)
    assert.deepEqual([first.claimed, first.retry, first.delivered], [2, 2, 0])
    const { retry, delivered, dead } = await drain(poller, { retries: true })
    assert.deepEqual({ retry, delivered, dead }, { retry: 1, delivered: 1, dead: 1 })
    assert.deepEqual(
      await db.query('select key, state, attempts, terminal_reason from outbox.deliveries order by key'),
      [
        { key: 'thrice', state: 'dead', attempts: 3, terminal_reason: 'exhausted' },
        { key: 'tomorrow', state: 'waiting', attempts: 0, terminal_reason: null },
        { key: 'twice', state: 'delivered', attempts: 2, terminal_reason: null },
      ],
    )
  }))

test('the horizon passes with the retries that are pulled near, and no attempt follows it', () =>
  withPoller(async (poller) => {
    await putEndpoint(db.sql, { name: 'clinic', horizonMs: 3_600_000 }, resolve)
    await write(event('never'))
    receiver.answer(503)
    assert.equal((await drain(poller, { retries: true })).dead, 1)
    // One every five minutes and up to 30 s, for an hour.
    assert.ok(receiver.requests.length >= 11 && receiver.requests.length <= 14, `${receiver.requests.length} attempts`)
    await putEndpoint(db.sql, { name: 'clinic', horizonMs: clinic.horizonMs }, resolve)
  }))

test('an endpoint that backs off is open again when retries are pulled near; a paused one stays paused', () =>
  withPoller(async (poller) => {
    await write(event('backing-off'), event('paused', { endpoint: 'ledger' }))
    await db.query(`update outbox.endpoint set backoff_until = now() + interval '1 hour' where name = 'clinic'`)
    await db.query(`update outbox.endpoint set paused_at = now(), paused_reason = 'a person' where name = 'ledger'`)
    assert.equal((await drain(poller)).claimed, 0)
    assert.equal((await drain(poller, { retries: true })).delivered, 1)
    assert.deepEqual(receiver.effects, ['backing-off'])
    await db.query('update outbox.endpoint set paused_at = null, paused_reason = null')
  }))

test('drain ends with an error where it would go on for ever, and says what to do', () =>
  withPoller(async (poller) => {
    await write(event('never'))
    receiver.answer(503)
    await assert.rejects(drain(poller, { retries: true, limit: 5 }), {
      code: 'drain_unfinished',
      message: /still due after 5 rounds \(.*"retry":[23].*\); make the receiver accept it, .* or raise limit/,
    })
  }))

test('what another transaction holds is still due, and drain does not say otherwise', () =>
  withPoller(async (poller) => {
    await write(event('held'))
    const holder = await begin(db)
    await holder.run('select from outbox.queue for update', [])
    await assert.rejects(drain(poller, { limit: 5 }), { code: 'drain_unfinished', message: /still due after 5 rounds/ })
    await holder.rollback()
    assert.equal((await drain(poller)).delivered, 1)
  }))

test('drain refuses while another poller is alive, before it has taken anything', () =>
  withPoller(async (poller) => {
    await write(event('shared'))
    const other = createPoller({ databaseUrl: db.url, name: 'left-behind', resolveSecret: receiver.resolveSecret })
    receiver.answer(503)
    await other.runOnce()
    await assert.rejects(drain(poller, { retries: true }), {
      code: 'drain_unfinished',
      message: /another poller is alive: left-behind; stop\(\) it first/,
    })
    assert.equal(receiver.requests.length, 1)
    await other.stop()
    receiver.answer(200)
    assert.equal((await drain(poller, { retries: true })).delivered, 1)
  }))

test('drain finds what was committed late, after other rounds had passed its place', () =>
  withPoller(async (poller) => {
    await putEndpoint(db.sql, receiver.endpoint('one-lane', { partitions: 1 }), resolve)
    const long = await begin(db)
    await long.run(`select outbox.enqueue('one-lane', 'late', 't', '{}')`, [])
    // The one that waits keeps the lane known, and with it how far it has been passed.
    await write(event('first', { endpoint: 'one-lane' }), event('last', { endpoint: 'one-lane', delayMs: 86_400_000 }))
    assert.equal((await drain(poller)).delivered, 1)
    await long.run(
      `update outbox.queue set next_attempt_at = next_attempt_at - interval '1 minute' where token is null`,
      [],
    )
    await long.commit()
    assert.equal((await drain(poller)).delivered, 1)
    assert.deepEqual(receiver.effects, ['first', 'late'])
  }))

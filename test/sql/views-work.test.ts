import assert from 'node:assert/strict'
import { after, beforeEach, test } from 'node:test'
import { eq } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/postgres-js'
import postgres from 'postgres'
import { attempts, backlog, dead, deliveries } from '../../src/index.ts'
import { settle } from '../../src/sql/settle.ts'
import { testDatabase } from '../support/database.ts'
import { add, addEndpoint, expire, GONE, lease, RETRY, result, TIMEOUT } from '../support/ledger.ts'

const db = await testDatabase()
const endpoint = await addEndpoint(db)
const client = postgres(db.url, { max: 1, fetch_types: false, onnotice: () => {} })
after(() => client.end({ timeout: 1 }))
/** As an app queries the views. */
const orm = drizzle(client)

beforeEach(() => db.query('truncate outbox.delivery, outbox.queue, outbox.attempt, outbox.receipt'))

const next = async (key: string) =>
  (await lease(db, endpoint)).find((claim) => claim.key === key) ?? assert.fail(`${key} was not due`)

test('backlog counts open work of each endpoint, a run-out lease as due', async () => {
  await addEndpoint(db, { name: 'idle' })
  await addEndpoint(db, { name: 'removed' })
  await db.query(`update outbox.endpoint set removed_at = now() where name = 'removed'`)
  for (const key of ['blocked', 'behind']) await add(db, key, { orderingKey: 'K' })
  await settle(db, [result(await next('blocked'), { ...GONE, verdict: 'block' })], 'p-1')
  await add(db, 'run-out')
  await next('run-out')
  await expire(db, 'run-out')
  const held = await addEndpoint(db, { name: 'held' })
  await add(db, 'leased', { endpoint: 'held' })
  await lease(db, held)
  for (const key of ['due-1', 'due-2']) await add(db, key)
  await add(db, 'later', { delayMs: '60000' })
  const rows = await orm.select().from(backlog).orderBy(backlog.endpoint)
  const none = { class: 'clinic', due: 0, leased: 0, scheduled: 0, parked: 0, blocked: 0, oldestDueAge: null }
  const [clinic, ...others] = rows
  assert.match(clinic?.oldestDueAge ?? '', /^00:09:/)
  assert.deepEqual(
    { ...clinic, oldestDueAge: null },
    { ...none, endpoint: 'clinic', due: 3, scheduled: 1, parked: 1, blocked: 1 },
  )
  assert.deepEqual(others, [
    { ...none, endpoint: 'held', leased: 1 },
    { ...none, endpoint: 'idle' },
  ])
})

test('attempts shows one row for each attempt, lost ones too', async () => {
  const id = await add(db, 'd', { correlationId: 'corr-1' })
  await next('d')
  await expire(db, 'd')
  await settle(db, [result(await next('d'), { ...RETRY, delayMs: 0, retryAfterMs: 5_000 })], 'p-2')
  await settle(db, [result(await next('d'))], 'p-2')
  const rows = await orm.select().from(attempts).where(eq(attempts.key, 'd')).orderBy(attempts.number)
  const common = {
    key: 'd',
    endpoint: 'clinic',
    class: 'clinic',
    type: 'eligibility.changed',
    deliveryId: BigInt(id),
    correlationId: 'corr-1',
  }
  assert.deepEqual(
    rows.map(({ startedAt: _s, finishedAt: _f, lagMs, tookMs, ...row }) => ({
      ...row,
      tookS: Math.round(tookMs / 1000),
      lag: typeof lagMs,
    })),
    [
      {
        ...{
          ...common,
          number: 1,
          outcome: 'unknown',
          verdict: 'retry',
          reason: 'worker_lost',
          httpStatus: null,
          phase: null,
        },
        ...{ requestSent: null, targetHost: null, bytesOut: null, bytesIn: null, retryAfterMs: null, replayed: false },
        ...{ poller: 'p-1', excerpt: null, tookS: 600, lag: 'number' },
      },
      {
        ...{
          ...common,
          number: 2,
          outcome: 'not_applied',
          verdict: 'retry',
          reason: 'http_429',
          httpStatus: 429,
          phase: 'done',
        },
        ...{
          requestSent: true,
          targetHost: 'clinic.test',
          bytesOut: 16,
          bytesIn: 2,
          retryAfterMs: 5_000,
          replayed: false,
        },
        ...{ poller: 'p-2', excerpt: null, tookS: 0, lag: 'number' },
      },
      {
        ...{
          ...common,
          number: 3,
          outcome: 'delivered',
          verdict: 'delivered',
          reason: null,
          httpStatus: 200,
          phase: 'done',
        },
        ...{
          requestSent: true,
          targetHost: 'clinic.test',
          bytesOut: 16,
          bytesIn: 2,
          retryAfterMs: null,
          replayed: false,
        },
        ...{ poller: 'p-2', excerpt: null, tookS: 0, lag: 'number' },
      },
    ],
  )
})

test('dead lists what finally failed, with the question whether it was applied all the same', async () => {
  await add(db, 'known')
  await settle(db, [result(await next('known'), GONE)], 'p-1')
  await add(db, 'maybe', { retentionDays: '3', correlationId: 'corr-2' })
  await settle(db, [result(await next('maybe'), { ...TIMEOUT, delayMs: 0 })], 'p-1')
  const id = (await next('maybe')).delivery_id
  await expire(db, 'maybe')
  await settle(db, [result(await next('maybe'), GONE)], 'p-1')
  await add(db, 'fine')
  await settle(db, [result(await next('fine'))], 'p-1')
  const rows = await orm.select().from(dead).orderBy(dead.deliveryId)
  const common = { endpoint: 'clinic', class: 'clinic', type: 'eligibility.changed', reason: 'gone', lastStatus: 410 }
  assert.deepEqual(
    rows.map(({ endedAt: _e, deleteAfter: _d, deliveryId: _i, ...row }) => row),
    [
      { key: 'known', ...common, attempts: 1, certainty: 'rejected', maybeApplied: false, correlationId: null },
      { key: 'maybe', ...common, attempts: 3, certainty: 'unknown', maybeApplied: true, correlationId: 'corr-2' },
    ],
  )
  assert.equal(rows[1]?.deliveryId, BigInt(id))
})

test('the columns of deliveries that come from the message are as enqueued', async () => {
  await add(db, 'd', { payload: null, payloadRef: 's3://x', orderingKey: 'K', correlationId: 'corr-3' })
  const [row] = await orm.select().from(deliveries)
  assert.deepEqual(
    { ...row, id: null, discoveredAt: null, scheduledAt: null, nextAttemptAt: null, whyNotYet: null },
    {
      ...{
        id: null,
        key: 'd',
        endpoint: 'clinic',
        class: 'clinic',
        type: 'eligibility.changed',
        orderingKey: 'K',
        state: 'waiting',
      },
      ...{
        discoveredAt: null,
        discoveredBy: 'app',
        scheduledAt: null,
        attempts: 0,
        lastStatus: null,
        lastOutcome: null,
      },
      ...{
        nextAttemptAt: null,
        leaseUntil: null,
        terminalReason: null,
        certainty: 'not_attempted',
        payloadRef: 's3://x',
      },
      ...{
        payloadSha256: null,
        payloadBytes: null,
        erasedAt: null,
        correlationId: 'corr-3',
        replayOf: null,
        endedAt: null,
      },
      ...{ deleteAfter: null, whyNotYet: null },
    },
  )
})

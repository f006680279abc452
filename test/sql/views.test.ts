import assert from 'node:assert/strict'
import { beforeEach, test } from 'node:test'
import { getViewConfig } from 'drizzle-orm/pg-core'
import { late } from '../../src/sql/late.ts'
import { settle } from '../../src/sql/settle.ts'
import * as views from '../../src/sql/views.ts'
import * as records from '../../src/sql/views-records.ts'
import { testDatabase } from '../support/database.ts'
import { add, addEndpoint, expire, GONE, lease, RETRY, result, TIMEOUT } from '../support/ledger.ts'

const db = await testDatabase()
const endpoint = await addEndpoint(db)

beforeEach(() => db.query('truncate outbox.delivery, outbox.queue, outbox.attempt, outbox.receipt, outbox.poller'))

const next = async (key: string) =>
  (await lease(db, endpoint)).find((claim) => claim.key === key) ?? assert.fail(`${key} was not due`)

const seen = async (key: string) => {
  const [row] = await db.query(
    `select state, attempts, last_status, last_outcome, terminal_reason, certainty, why_not_yet,
            next_attempt_at is not null as due, lease_until is not null as lease, ended_at is not null as ended
     from outbox.deliveries where key = $1`,
    key,
  )
  return row ?? assert.fail(`no ${key}`)
}

const NEW = {
  ...{ state: 'waiting', attempts: 0, last_status: null, last_outcome: null, terminal_reason: null },
  ...{ certainty: 'not_attempted', why_not_yet: null as string | null, due: true, lease: false, ended: false },
}

/** All as given, `why_not_yet` by its pattern. */
async function shows(key: string, expected: Partial<typeof NEW> | object, why: RegExp | null): Promise<void> {
  const { why_not_yet, ...rest } = await seen(key)
  const { why_not_yet: _, ...wanted } = { ...NEW, ...expected }
  assert.deepEqual(rest, wanted)
  if (why === null) assert.equal(why_not_yet, null)
  else assert.match(String(why_not_yet), why)
}

test('each view and each of its columns has a comment, and drizzle knows the same columns', async () => {
  const rows = await db.query<{ view: string; column: string; said: boolean; about: boolean }>(
    `select c.relname::text as view, a.attname::text as column, col_description(c.oid, a.attnum) is not null as said, obj_description(c.oid) is not null as about
     from pg_class c join pg_attribute a on a.attrelid = c.oid
     where c.relnamespace = 'outbox'::regnamespace and c.relkind = 'v' order by c.relname, a.attnum`,
  )
  assert.deepEqual(
    rows.filter((row) => !row.said || !row.about),
    [],
  )
  const typed = [...Object.values(views), ...Object.values(records)].map((view) => getViewConfig(view))
  assert.deepEqual([...new Set(rows.map((row) => row.view))], typed.map(({ name }) => name).sort())
  for (const { name, selectedFields } of typed) {
    const columns = Object.values(selectedFields).map((column) => (column as { name: string }).name)
    const found = rows.filter((row) => row.view === name).map((row) => row.column)
    assert.deepEqual(columns, found, name)
  }
})

test('deliveries tells the state of open work in words, and what it waits for', async () => {
  await add(db, 'd')
  await shows('d', {}, /^due for 00:00:\d\d, and no poller is alive$/)
  await db.query(`insert into outbox.poller (name, heartbeat_ms, version) values ('p', 5000, '1')`)
  await shows('d', {}, /^due for 00:00:\d\d$/)
  await add(db, 'later', { delayMs: '600000' })
  await shows('later', {}, /^due in 00:(10:00|09:\d\d)$/)
  const claim = await next('d')
  await shows(
    'd',
    { state: 'leased', attempts: 1, certainty: 'unknown', due: false, lease: true },
    /^leased by p-1 for 00:00:\d\d more$/,
  )
  await expire(db, 'd')
  await shows(
    'd',
    { attempts: 1, certainty: 'unknown', lease: true },
    /^lease of p-1 ran out, due again for 00:09:\d\d$/,
  )
  await settle(db, [result(claim, RETRY)], 'p-1')
  await shows(
    'd',
    { attempts: 1, last_status: 429, last_outcome: 'not_applied', certainty: 'not_applied' },
    /^due in 00:0[45]:\d\d$/,
  )
})

test('deliveries tells what stops an endpoint', async () => {
  await add(db, 'd')
  for (const [stop, why] of [
    [`paused_at = now(), paused_reason = 'audit'`, /^endpoint paused: audit$/],
    [
      `paused_at = null, paused_reason = null, backoff_until = now() + interval '1 hour'`,
      /^endpoint backing off until 20\d\d-/,
    ],
    [`backoff_until = null, tripped_until = now() + interval '1 hour'`, /^endpoint tripped until 20\d\d-/],
    [`tripped_until = null`, /^due for /],
  ] as const) {
    await db.query(`update outbox.endpoint set ${stop}`)
    await shows('d', {}, why)
  }
})

test('deliveries tells who is in the way, and what is in nobody’s way and still parked', async () => {
  for (const key of ['head', 'second', 'third']) await add(db, key, { orderingKey: 'K' })
  const parked = { state: 'parked', due: false }
  await shows('second', parked, /^behind key head$/)
  await settle(db, [result(await next('head'), { ...GONE, verdict: 'block' })], 'p-1')
  const blocked = {
    state: 'blocked',
    attempts: 1,
    last_status: 410,
    last_outcome: 'rejected',
    terminal_reason: 'gone',
    certainty: 'rejected',
  }
  await shows('head', { ...blocked, due: false }, /^blocked: gone$/)
  await shows('third', parked, /^behind key head$/)
  await db.query(
    `delete from outbox.queue where delivery_id in (select id from outbox.delivery where key in ('head', 'second'))`,
  )
  await shows('third', parked, /^behind key \(none: due with the next sweep\)$/)
})

test('certainty is over all attempts: delivered, before unknown, before the rest', async () => {
  await add(db, 'd')
  const a = await next('d')
  await settle(db, [result(a, { ...TIMEOUT, delayMs: 0 })], 'p-1')
  const b = await next('d')
  await settle(db, [result(b, { ...RETRY, delayMs: 0 })], 'p-1')
  const waiting = { attempts: 2, last_status: 429, last_outcome: 'not_applied' }
  await shows('d', { ...waiting, certainty: 'unknown' }, /^due for /)
  await settle(db, [result(await next('d'), GONE)], 'p-1')
  const dead = { attempts: 3, last_status: 410, last_outcome: 'rejected', due: false, ended: true }
  await shows('d', { ...dead, state: 'dead', terminal_reason: 'gone', certainty: 'unknown' }, null)
  await late(db, [result(a)])
  await shows(
    'd',
    { ...dead, state: 'delivered', terminal_reason: 'late, after dead (gone)', certainty: 'delivered' },
    null,
  )
})

test('a delivered attempt makes the certainty, also while somebody else still holds the delivery', async () => {
  await add(db, 'd')
  const a = await next('d')
  await expire(db, 'd')
  await next('d')
  await late(db, [result(a)])
  const held = { state: 'leased', attempts: 2, last_status: 200, last_outcome: 'delivered', due: false, lease: true }
  await shows('d', { ...held, certainty: 'delivered' }, /^leased by /)
})

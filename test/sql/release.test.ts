import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { release } from '../../src/sql/release.ts'
import { settle } from '../../src/sql/settle.ts'
import { testDatabase } from '../support/database.ts'
import { add, addEndpoint, expire, given, type Leased, lease, result, TIMEOUT } from '../support/ledger.ts'
import { begin } from '../support/session.ts'

const db = await testDatabase()
let endpoints = 0
const clinic = () => addEndpoint(db, { name: `clinic-${++endpoints}` })

const row = async ({ delivery_id }: Leased) =>
  (
    await db.query(
      `select attempts, lost, token, leased_at, leased_by, first_attempt_at is null as untried, maybe_applied_at is null as surely_not,
              round(extract(epoch from next_attempt_at - clock_timestamp()) / 60)::int as due_min
       from outbox.queue where delivery_id = $1`,
      delivery_id,
    )
  )[0]

const FREE = { token: null, leased_at: null, leased_by: null }

test('a lease given back is not charged: the delivery is as it was, due after the delay', async () => {
  const endpoint = await clinic()
  await add(db, 'unsent', { endpoint: endpoint.name })
  const [claim] = await lease(db, endpoint)
  assert.deepEqual(await release(db, [given(claim!)], { delayMs: 600_000 }), [claim?.delivery_id])
  assert.deepEqual(await row(claim!), { ...FREE, attempts: 0, lost: 0, untried: true, surely_not: true, due_min: 10 })
  assert.deepEqual(await db.query('select from outbox.attempt where delivery_id = $1', claim!.delivery_id), [])
  await db.age('unsent', '11 minutes')
  assert.equal((await lease(db, endpoint))[0]?.number, 1, 'the next attempt is the first again')
})

test('what earlier attempts left stays: their number, their losses, the time of the first', async () => {
  const endpoint = await clinic()
  await add(db, 'tried', { endpoint: endpoint.name })
  const [first] = await lease(db, endpoint)
  await settle(db, [result(first!, { ...TIMEOUT, delayMs: 0 })], 'p-1')
  await lease(db, endpoint)
  await expire(db, 'tried')
  const [third] = await lease(db, endpoint)
  await release(db, [given(third!)], { delayMs: 0 })
  assert.deepEqual(await row(third!), { ...FREE, attempts: 2, lost: 1, untried: false, surely_not: false, due_min: 0 })
})

test('a lease that is no longer held cannot be given back', async () => {
  const endpoint = await clinic()
  for (const key of ['stale', 'beside']) await add(db, key, { endpoint: endpoint.name })
  const [stale] = await lease(db, endpoint, { limit: 1 })
  await expire(db, 'stale')
  const both = await lease(db, endpoint)
  const [held, beside] = ['stale', 'beside'].map((key) => both.find((claim) => claim.key === key)!)
  const before = await row(held!)
  assert.deepEqual(await release(db, [given(stale!), given({ ...held!, token: randomUUID() })], { delayMs: 0 }), [])
  // One token covers all rows of its claim: giving one of them back must not give back the other.
  assert.deepEqual(await release(db, [given(stale!), given(beside!)], { delayMs: 0 }), [beside?.delivery_id])
  assert.deepEqual(await row(held!), before)
})

test('a settle and a release of one lease, both open at once: the second finds nothing', async () => {
  const endpoint = await clinic()
  await add(db, 'raced', { endpoint: endpoint.name })
  const [claim] = await lease(db, endpoint)
  const [a, b] = [await begin(db), await begin(db)]
  await settle(a, [result(claim!)], 'p-1')
  const second = release(b, [given(claim!)], { delayMs: 0 })
  await b.untilBlocked()
  await a.commit()
  assert.deepEqual(await second, [])
  await b.commit()
  assert.equal(await row(claim!), undefined)
})

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { beforeEach, test } from 'node:test'
import { enqueue } from '../../src/sql/enqueue.ts'
import { late } from '../../src/sql/late.ts'
import { purge } from '../../src/sql/purge.ts'
import { settle } from '../../src/sql/settle.ts'
import { testDatabase } from '../support/database.ts'
import { add, addEndpoint, expire, type Leased, lease, message, result, states } from '../support/ledger.ts'
import { begin } from '../support/session.ts'

const db = await testDatabase()
const endpoint = await addEndpoint(db, { retentionDays: 30 })
const LIFE = ['delivery', 'queue', 'attempt', 'receipt', 'tombstone', 'purge_run']

beforeEach(() => db.query(`truncate ${LIFE.map((table) => `outbox.${table}`).join(', ')}`))

const purgeAll = (more: Partial<Parameters<typeof purge>[1]> = {}, on: Parameters<typeof purge>[0] = db) =>
  purge(on, { limit: 100, tombstoneDays: 365, runId: randomUUID(), ...more })
const NOTHING = { deliveries: 0, attempts: 0, tombstones: 0, tombstonesExpired: 0 }

async function next(key: string): Promise<Leased> {
  return (await lease(db, endpoint)).find((claim) => claim.key === key) ?? assert.fail(`${key} was not due`)
}

/** Delivered, and past its retention. */
async function ended(key: string, more: Parameters<typeof add>[2] = {}): Promise<Leased> {
  await add(db, key, more)
  const claim = await next(key)
  await settle(db, [result(claim)], 'p-1')
  await db.age(key, '31 days')
  return claim
}

const counts = async () =>
  (
    await db.query(
      `select ${LIFE.map((table) => `(select count(*)::int from outbox.${table}) as ${table}`).join(', ')}`,
    )
  )[0]

test('what is past its retention goes, with its attempts; a tombstone and a record of the run stay', async () => {
  const { delivery_id } = await ended('gone')
  await add(db, 'young')
  await settle(db, [result(await next('young'))], 'p-1')
  const runId = randomUUID()
  assert.deepEqual(await purgeAll({ runId, tombstoneDays: 10 }), {
    ...NOTHING,
    deliveries: 1,
    attempts: 1,
    tombstones: 1,
  })
  assert.deepEqual(await states(db), [{ key: 'young', state: 'delivered' }])
  assert.deepEqual(await counts(), { delivery: 1, queue: 0, attempt: 1, receipt: 1, tombstone: 1, purge_run: 1 })
  const [stone] = await db.query(
    `select key_sha256 = sha256('gone') as of_key, payload_sha256 = sha256('{"patient":1842}') as of_payload, delivery_id, ending,
            certainty, attempts, extract(epoch from delete_after - deleted_at)::int / 86400 as days,
            (extract(epoch from deleted_at - ended_at) / 86400)::int as after_days from outbox.tombstone`,
  )
  const kept = { ending: 'delivered', certainty: 'delivered', attempts: 1, days: 10, after_days: 31 }
  assert.deepEqual(stone, { of_key: true, of_payload: true, delivery_id, ...kept })
  const [run] = await db.query(
    `select id, batches, deliveries, attempts, tombstones, tombstones_expired, finished_at >= started_at as ended,
            oldest_delete_after = newest_delete_after as same from outbox.purge_run`,
  )
  assert.deepEqual(run, {
    ...{ id: runId, batches: 1, deliveries: '1', attempts: '1', tombstones: '1', tombstones_expired: '0' },
    ...{ ended: true, same: true },
  })
})

test('the batches of a run add up in one record, in the statement that deletes', async () => {
  for (let i = 0; i < 3; i++) await ended(`batch-${i}`)
  const runId = randomUUID()
  const undone = await begin(db)
  await purgeAll({ runId, limit: 2 }, undone)
  await undone.rollback()
  assert.deepEqual(await counts(), { delivery: 3, queue: 0, attempt: 3, receipt: 3, tombstone: 0, purge_run: 0 })
  for (const deliveries of [2, 1, 0]) assert.equal((await purgeAll({ runId, limit: 2 })).deliveries, deliveries)
  assert.deepEqual(
    await db.query(
      'select batches, deliveries::int, attempts::int, tombstones::int, newest_delete_after > oldest_delete_after as span from outbox.purge_run',
    ),
    [{ batches: 2, deliveries: 3, attempts: 3, tombstones: 3, span: true }],
  )
  await purgeAll()
  assert.equal((await counts())?.purge_run, 1, 'a run that finds nothing leaves no record')
})

test('two purges at once share the receipts and wait for nobody', async () => {
  for (let i = 0; i < 3; i++) await ended(`shared-${i}`)
  const [a, b] = [await begin(db), await begin(db)]
  assert.equal((await purgeAll({ limit: 2 }, a)).deliveries, 2)
  assert.equal((await purgeAll({}, b)).deliveries, 1)
  await a.commit()
  await b.commit()
  assert.deepEqual(await counts(), { delivery: 0, queue: 0, attempt: 0, receipt: 0, tombstone: 3, purge_run: 2 })
})

test('a late result for what is being purged finds nothing and leaves nothing', async () => {
  await add(db, 'late')
  const a = await next('late')
  await expire(db, 'late')
  await settle(db, [result(await next('late'))], 'p-2')
  await db.age('late', '31 days')
  const purging = await begin(db)
  await purgeAll({}, purging)
  const other = await begin(db)
  const noted = Promise.resolve(late(other, [result(a)]))
  await other.untilBlocked()
  await purging.commit()
  assert.deepEqual(await noted, [])
  await other.commit()
  assert.deepEqual(await counts(), { delivery: 0, queue: 0, attempt: 0, receipt: 0, tombstone: 1, purge_run: 1 })
})

test('an enqueue of the key that is just being purged waits, and then meets the tombstone', async () => {
  await ended('again')
  const purging = await begin(db)
  await purgeAll({}, purging)
  const app = await begin(db)
  const answer = enqueue(app, message('again'))
  await app.untilBlocked()
  await purging.commit()
  assert.deepEqual(await answer, { id: null, inserted: false, conflict: null, purged: true })
  await app.commit()
  assert.deepEqual(await counts(), { delivery: 0, queue: 0, attempt: 0, receipt: 0, tombstone: 1, purge_run: 1 })
})

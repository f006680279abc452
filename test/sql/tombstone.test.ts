import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { beforeEach, test } from 'node:test'
import { enqueue } from '../../src/sql/enqueue.ts'
import { purge } from '../../src/sql/purge.ts'
import { settle } from '../../src/sql/settle.ts'
import { testDatabase } from '../support/database.ts'
import { add, addEndpoint, lease, message, result, states } from '../support/ledger.ts'

const db = await testDatabase()
const endpoint = await addEndpoint(db, { retentionDays: 0 })

beforeEach(() => db.query('truncate outbox.delivery, outbox.queue, outbox.attempt, outbox.receipt, outbox.tombstone'))

const purgeAll = (limit = 100) => purge(db, { limit, tombstoneDays: 365, runId: randomUUID() })

/** Delivered and purged: only the tombstone is left. */
async function buried(...keys: string[]): Promise<void> {
  for (const key of keys) await add(db, key)
  for (const claim of await lease(db, endpoint)) await settle(db, [result(claim)], 'p-1')
  assert.equal((await purgeAll()).tombstones, keys.length)
}

const graves = () =>
  db.query<{ delivery_id: string }>('select delivery_id, delete_after > now() as live from outbox.tombstone order by 1')

const letRunOut = () => db.query(`update outbox.tombstone set delete_after = now() - interval '1 second'`)

// case C41
test('a purged key still deduplicates, whatever is sent under it, and says so without an error', async () => {
  await buried('once')
  const purged = { id: null, inserted: false, conflict: null, purged: true }
  assert.deepEqual(await enqueue(db, message('once')), purged)
  assert.deepEqual(await enqueue(db, message('once', { type: 'another', payload: '{}', orderingKey: 'K' })), purged)
  assert.deepEqual(await states(db), [], 'nothing is left of the tries')
  assert.deepEqual(await db.query('select from outbox.queue'), [])
})

test('when its tombstone has run out the key is free, before and after that tombstone is purged', async () => {
  await buried('once')
  await letRunOut()
  const first = await add(db, 'once')
  assert.equal((await graves()).length, 1, 'still there')
  const { deliveries, tombstonesExpired } = await purgeAll()
  assert.deepEqual([deliveries, tombstonesExpired, await graves()], [0, 1, []])
  const [run] = await db.query(
    'select deliveries::int, tombstones_expired::int from outbox.purge_run order by started_at desc limit 1',
  )
  assert.deepEqual(run, { deliveries: 0, tombstones_expired: 1 }, 'on record too')
  assert.equal((await enqueue(db, message('once'))).id, first, 'the new delivery is still there')
})

test('a key that ends again while its old tombstone has just run out has one tombstone, the new one', async () => {
  await buried('reused')
  await letRunOut()
  const id = await add(db, 'reused')
  for (const claim of await lease(db, endpoint)) await settle(db, [result(claim)], 'p-1')
  await purgeAll()
  assert.deepEqual(
    (await graves()).filter((grave) => grave.delivery_id === id),
    [{ delivery_id: id, live: true }],
  )
  assert.equal((await enqueue(db, message('reused'))).purged, true)
})

test('tombstones that have run out go in batches too', async () => {
  await buried('a', 'b', 'c')
  await letRunOut()
  assert.deepEqual([(await purgeAll(2)).tombstonesExpired, (await purgeAll(2)).tombstonesExpired], [2, 1])
  assert.deepEqual(await graves(), [])
})

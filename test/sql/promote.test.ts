import assert from 'node:assert/strict'
import { beforeEach, test } from 'node:test'
import { enqueue } from '../../src/sql/enqueue.ts'
import { promote } from '../../src/sql/promote.ts'
import { settle } from '../../src/sql/settle.ts'
import { testDatabase } from '../support/database.ts'
import { add, addEndpoint, GONE, lease, message, result, states } from '../support/ledger.ts'
import { begin } from '../support/session.ts'

const db = await testDatabase()
const endpoint = await addEndpoint(db)
const ALL = { endpointId: 0, orderingKey: '', keys: 100 }

beforeEach(() => db.query('truncate outbox.delivery, outbox.queue, outbox.attempt, outbox.receipt'))

/** A follower that was enqueued while its head was open, and committed after the head had ended. */
async function straggler(key: string, orderingKey: string, delayMs: string | null = null): Promise<void> {
  await add(db, `${key}-head`, { orderingKey })
  const [head] = await lease(db, endpoint)
  const late = await begin(db)
  await enqueue(late, message(key, { orderingKey, delayMs }))
  await settle(db, [result(head ?? assert.fail())], 'p-1')
  await late.commit()
}

test('a follower that committed after its head had ended becomes due', async () => {
  await straggler('straggler', 'K')
  await straggler('delayed', 'L', '600000')
  assert.deepEqual(await lease(db, endpoint), [], 'parked behind nobody')
  assert.deepEqual(await promote(db, ALL), {
    ...{ promoted: 2, keys: 2, last_endpoint_id: endpoint.id, last_ordering_key: 'L' },
  })
  assert.deepEqual(
    await db.query(
      `select key, state, round(extract(epoch from next_attempt_at - clock_timestamp()) / 60)::int as due_min
       from outbox.deliveries where ended_at is null order by id`,
    ),
    [
      { key: 'straggler', state: 'waiting', due_min: 0 },
      { key: 'delayed', state: 'waiting', due_min: 10 },
    ],
  )
  assert.deepEqual((await promote(db, ALL)).promoted, 0, 'once')
})

test('who is behind an open head stays parked, whatever the head does', async () => {
  for (const key of ['head', 'second', 'third']) await add(db, key, { orderingKey: 'K' })
  const waiting = [
    { key: 'second', state: 'parked' },
    { key: 'third', state: 'parked' },
  ]
  const promoted = async () => (await promote(db, ALL)).promoted
  assert.equal(await promoted(), 0, 'the head is due')
  const [head] = await lease(db, endpoint)
  assert.equal(await promoted(), 0, 'leased')
  await settle(db, [result(head ?? assert.fail(), { ...GONE, verdict: 'block' })], 'p-1')
  assert.equal(await promoted(), 0, 'blocked')
  assert.deepEqual(await states(db), [{ key: 'head', state: 'blocked' }, ...waiting])
})

test('a page ends where it says; the next one goes on after it', async () => {
  for (const key of ['a', 'b', 'c']) await straggler(`page-${key}`, key)
  const first = await promote(db, { ...ALL, keys: 2 })
  assert.deepEqual(first, { promoted: 2, keys: 2, last_endpoint_id: endpoint.id, last_ordering_key: 'b' })
  const rest = { endpointId: first.last_endpoint_id ?? 0, orderingKey: first.last_ordering_key ?? '', keys: 2 }
  assert.deepEqual(await promote(db, rest), {
    promoted: 1,
    keys: 1,
    last_endpoint_id: endpoint.id,
    last_ordering_key: 'c',
  })
  assert.deepEqual(await promote(db, ALL), { promoted: 0, keys: 0, last_endpoint_id: null, last_ordering_key: null })
})

// case C03
test('a sweep that read a parked row before somebody took it does not touch the lease, nor bring back what ended', async () => {
  for (const how of ['leased', 'delivered'] as const) {
    await straggler(`swept-${how}`, how)
    const worker = await begin(db)
    await promote(worker, ALL)
    const [claim] = await lease(worker, endpoint)
    if (how === 'delivered') await settle(worker, [result(claim ?? assert.fail())], 'p-1')
    // This one still reads the row as parked; it may wait for the worker or pass over the row, but not write to it.
    const sweeper = await begin(db)
    const sweep = promote(sweeper, ALL)
    await sweeper.untilBlocked(sweep)
    await worker.commit()
    assert.equal((await sweep).promoted, 0, how)
    await sweeper.commit()
    const [row] = await db.query<{ state: string; lease: boolean }>(
      `select state, lease_until > clock_timestamp() + interval '20 seconds' as lease from outbox.deliveries where key = $1`,
      `swept-${how}`,
    )
    assert.deepEqual(row, how === 'leased' ? { state: how, lease: true } : { state: how, lease: null })
  }
})

// case C03
test('two sweeps at once make a row due once', async () => {
  await straggler('twice', 'K')
  const [a, b] = [await begin(db), await begin(db)]
  assert.equal((await promote(a, ALL)).promoted, 1)
  assert.equal((await promote(b, ALL)).promoted, 0, 'passed over, without waiting')
  await Promise.all([a.commit(), b.commit()])
})

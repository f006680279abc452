// The digest of a payload that is kept elsewhere: written once, under a lease, and true for every later attempt.
import assert from 'node:assert/strict'
import { createHash, randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { enqueue } from '../../src/sql/enqueue.ts'
import { enqueueMany } from '../../src/sql/enqueue-many.ts'
import { pin } from '../../src/sql/pin.ts'
import { gaps } from '../../src/sql/reconcile.ts'
import { release } from '../../src/sql/release.ts'
import { testDatabase } from '../support/database.ts'
import { add, addEndpoint, given, type Leased, lease, message } from '../support/ledger.ts'
import { begin } from '../support/session.ts'

const db = await testDatabase()
let endpoints = 0
const clinic = () => addEndpoint(db, { name: `clinic-${++endpoints}` })

const digest = (text: string) => createHash('sha256').update(text).digest('hex')
const A = digest('{"a":1}')
const B = digest('{"b":2}')
const by = ({ delivery_id: deliveryId, token }: Leased, sha256: string, bytes = 7) => ({
  ...{ deliveryId, token, sha256, bytes },
})
const pinned = (key: string) =>
  db.query(
    `select encode(payload_sha256, 'hex') as sha256, payload_bytes as bytes from outbox.delivery where key = $1`,
    key,
  )
const reference = (endpoint: string, ref = 's3://x') => ({ endpoint, payload: null, payloadRef: ref })

test('the first digest is kept, whoever comes later learns it, and the next claim brings it', async () => {
  const endpoint = await clinic()
  for (const key of ['first', 'other']) await add(db, key, reference(endpoint.name))
  await add(db, 'plain', { endpoint: endpoint.name })
  const leased = await lease(db, endpoint)
  const [first, other] = ['first', 'other'].map((key) => leased.find((one) => one.key === key) as Leased)
  assert.ok(first && other)
  assert.equal(first.pinned, null)
  assert.deepEqual(
    [...(await pin(db, [by(other, B, 8), by(first, A)]))].toSorted(),
    [
      [first.delivery_id, A],
      [other.delivery_id, B],
    ].toSorted(),
  )
  assert.deepEqual([...(await pin(db, [by(first, B, 8)]))], [[first.delivery_id, A]])
  assert.deepEqual([await pinned('first'), await pinned('other')].flat(), [
    { sha256: A, bytes: 7 },
    { sha256: B, bytes: 8 },
  ])
  await release(db, leased.map(given), { delayMs: 0 })
  const again = await lease(db, endpoint)
  assert.deepEqual(
    again.map((one) => [one.key, one.pinned]).toSorted(),
    [
      ['first', A],
      ['other', B],
      ['plain', null],
    ],
    'a payload that is here is compared with nothing',
  )
})

test('without the lease, for a payload that is here or one that was erased, nothing is pinned', async () => {
  const endpoint = await clinic()
  for (const key of ['stale', 'erased']) await add(db, key, reference(endpoint.name))
  await add(db, 'here', { endpoint: endpoint.name })
  const leased = await lease(db, endpoint)
  await db.query(`update outbox.delivery set payload_ref = null, erased_at = now() where key = 'erased'`)
  const before = [await pinned('stale'), await pinned('here'), await pinned('erased')]
  const known = await pin(
    db,
    leased.map((one) => ({ ...by(one, A), token: one.key === 'stale' ? randomUUID() : one.token })),
  )
  assert.deepEqual([...known], [])
  assert.deepEqual([await pinned('stale'), await pinned('here'), await pinned('erased')], before)
})

test('of two that pin at once, the second waits for the first and learns what it wrote', async () => {
  const endpoint = await clinic()
  await add(db, 'raced', reference(endpoint.name))
  const [claim] = await lease(db, endpoint)
  assert.ok(claim)
  const one = await begin(db)
  await pin(one, [by(claim, A)])
  const two = await begin(db)
  const other = pin(two, [by(claim, B, 8)])
  await two.untilBlocked(other)
  await one.commit()
  assert.deepEqual([...(await other)], [[claim.delivery_id, A]])
  await two.commit()
  assert.deepEqual(await pinned('raced'), [{ sha256: A, bytes: 7 }])
})

test('a pinned digest makes a reused key no conflict: the same reference is the same payload', async () => {
  const endpoint = await clinic()
  await add(db, 'reused', reference(endpoint.name))
  const [claim] = await lease(db, endpoint)
  assert.ok(claim)
  await pin(db, [by(claim, A)])
  const wanted = (more: object) => message('reused', { ...reference(endpoint.name), ...more })
  for (const [more, conflict, gap] of [
    [{}, null, []],
    [{ payloadRef: 's3://y' }, 'payload', [{ number: 1, gap: 'payload' }]],
    [{ payloadRef: null, payload: '{"a":1}' }, 'payload', [{ number: 1, gap: 'payload' }]],
  ] as const) {
    const { payload, payloadRef, ...row } = wanted(more)
    assert.equal((await enqueue(db, wanted(more))).conflict, conflict)
    assert.equal((await enqueueMany(db, [wanted(more)]))[0]?.conflict, conflict)
    const payloadSha256 = payload === null ? null : digest(payload)
    assert.deepEqual(await gaps(db, [{ ...row, payloadRef, payloadSha256 }]), gap)
  }
})

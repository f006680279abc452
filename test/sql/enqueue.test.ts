import assert from 'node:assert/strict'
import { test } from 'node:test'
import { enqueue } from '../../src/sql/enqueue.ts'
import { testDatabase } from '../support/database.ts'
import { add, addEndpoint, LANE, lease, message } from '../support/ledger.ts'
import { begin } from '../support/session.ts'

const db = await testDatabase()
const clinic = await addEndpoint(db)
await addEndpoint(db, { name: 'ledger' })
await db.query('create table note (n int)')

const rows = async (key: string) =>
  (
    await db.query<{ deliveries: number; queued: number }>(
      `select count(d.id)::int as deliveries, count(q.delivery_id)::int as queued
       from outbox.delivery d left join outbox.queue q on q.delivery_id = d.id where d.key = $1`,
      key,
    )
  )[0]

const NOTHING = { deliveries: 0, queued: 0 }
const ONE = { deliveries: 1, queued: 1 }
const AGAIN = { inserted: false, purged: false, conflict: null }

test('an enqueue writes the fact and its place in the queue', async () => {
  const traceparent = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`
  const more = { orderingKey: 'patient-1', correlationId: 'corr-1', traceparent, retentionDays: '7' }
  const answer = await enqueue(db, message('full', more))
  assert.deepEqual(answer, { id: answer.id, inserted: true, conflict: null, purged: false })
  const [fact] = await db.query(
    `select id, endpoint_id, lane, type, ordering_key, payload::text as payload, payload_ref, payload_bytes, discovered_by,
            payload_sha256 = sha256(convert_to(payload::text, 'UTF8')) as digest, correlation_id, traceparent, retention_days,
            scheduled_at = discovered_at as at_once, erased_at, replay_of from outbox.delivery where key = 'full'`,
  )
  assert.deepEqual(fact, {
    ...{ id: answer.id, endpoint_id: clinic.id, lane: LANE, type: 'eligibility.changed', ordering_key: 'patient-1' },
    ...{ payload: '{"patient":1842}', payload_ref: null, payload_bytes: 16, discovered_by: 'app', digest: true },
    ...{ correlation_id: 'corr-1', traceparent, retention_days: 7, at_once: true, erased_at: null, replay_of: null },
  })
  const [open] = await db.query(
    `select q.*, next_attempt_at = d.scheduled_at as on_time from outbox.queue q join outbox.delivery d on d.id = q.delivery_id where d.key = 'full'`,
  )
  const untouched = {
    leased_at: null,
    leased_by: null,
    token: null,
    ready_at: null,
    first_attempt_at: null,
    maybe_applied_at: null,
  }
  assert.deepEqual(open, {
    ...{ ...open, ...untouched, delivery_id: answer.id, endpoint_id: clinic.id, lane: LANE, ordering_key: 'patient-1' },
    ...{ attempts: 0, base: 0, lost: 0, blocked_reason: null, on_time: true },
  })
})

test('a reference instead of a payload has no digest until somebody has seen the bytes', async () => {
  await add(db, 'by-reference', { payload: null, payloadRef: 's3://claims/1' })
  const [fact] = await db.query(
    `select payload, payload_ref, payload_sha256, payload_bytes from outbox.delivery where key = 'by-reference'`,
  )
  assert.deepEqual(fact, { payload: null, payload_ref: 's3://claims/1', payload_sha256: null, payload_bytes: null })
})

test('a first attempt can be put off by a delay or to an instant, and never into the past', async () => {
  const [at] = await db.query<{ text: string }>(`select (clock_timestamp() + interval '3 days')::text as text`)
  await add(db, 'in-an-hour', { delayMs: '3600000' })
  await add(db, 'in-three-days', { notBefore: at?.text ?? '' })
  await add(db, 'long-ago', { notBefore: '2001-01-01T00:00:00Z' })
  const due = await db.query(
    `select d.key, round(extract(epoch from q.next_attempt_at - d.discovered_at) / 3600)::int as hours, d.scheduled_at = q.next_attempt_at as kept
     from outbox.delivery d join outbox.queue q on q.delivery_id = d.id where d.key ~ '^(in|long)-' order by d.id`,
  )
  assert.deepEqual(due, [
    { key: 'in-an-hour', hours: 1, kept: true },
    { key: 'in-three-days', hours: 72, kept: true },
    { key: 'long-ago', hours: 0, kept: true },
  ])
})

// case C40
test('a rollback, a savepoint taken back and a connection that dies leave nothing', async () => {
  const undone = await begin(db)
  assert.equal((await enqueue(undone, message('undone'))).inserted, true)
  await undone.rollback()
  const partly = await begin(db)
  await enqueue(partly, message('kept'))
  await partly.run('savepoint s', [])
  await enqueue(partly, message('partly'))
  await partly.run('rollback to savepoint s', [])
  await partly.commit()
  const killed = await begin(db)
  await enqueue(killed, message('killed'))
  await db.query('select pg_terminate_backend($1::text::int, 10000)', String(killed.pid))
  assert.deepEqual(await Promise.all(['undone', 'partly', 'killed', 'kept'].map(rows)), [
    NOTHING,
    NOTHING,
    NOTHING,
    ONE,
  ])
  assert.deepEqual(
    (await lease(db, clinic)).filter(({ key }) => ['undone', 'partly', 'killed'].includes(key)),
    [],
  )
})

// case C41
test('of two enqueues of one key at once exactly one inserts, and both transactions go on', async () => {
  for (const end of ['commit', 'rollback'] as const) {
    const key = `same-${end}`
    const [a, b] = [await begin(db), await begin(db)]
    const first = await enqueue(a, message(key))
    const pending = enqueue(b, message(key))
    await b.untilBlocked()
    await a.run('insert into note values (1)', [])
    await a[end]()
    const second = await pending
    await b.run('insert into note values (2)', [])
    await b.commit()
    assert.equal(first.inserted, true)
    if (end === 'commit') assert.deepEqual(second, { ...AGAIN, id: first.id })
    else assert.equal(second.inserted, true, 'the first one never was')
    assert.deepEqual(await rows(key), ONE)
  }
  assert.deepEqual(await db.query('select n, count(*)::int as times from note group by n order by n'), [
    { n: 1, times: 1 },
    { n: 2, times: 2 },
  ])
})

// case C41
test('a key that exists says what differs, and never fails', async () => {
  const id = await add(db, 'reused')
  await add(db, 'reused-ref', { payload: null, payloadRef: 's3://a' })
  const tx = await begin(db)
  const conflict = async (more: Parameters<typeof message>[1], key = 'reused') =>
    (await enqueue(tx, message(key, more))).conflict
  assert.deepEqual(await enqueue(tx, message('reused')), { ...AGAIN, id })
  assert.equal(await conflict({ endpoint: 'ledger' }), 'endpoint')
  assert.equal(await conflict({ type: 'eligibility.lost' }), 'type')
  assert.equal(await conflict({ payload: '{"patient": 1842}' }), 'payload', 'other bytes are another payload')
  assert.equal(await conflict({ payload: null, payloadRef: 's3://a' }), 'payload')
  assert.equal(await conflict({ endpoint: 'ledger', type: 't', payload: '{}' }), 'endpoint', 'the first that differs')
  assert.equal(await conflict({ payload: null, payloadRef: 's3://a' }, 'reused-ref'), null)
  assert.equal(await conflict({ payload: null, payloadRef: 's3://b' }, 'reused-ref'), 'payload')
  assert.equal(await conflict({}, 'reused-ref'), 'payload')
  // An erased payload is still known by its digest.
  await tx.run(`update outbox.delivery set payload = null, erased_at = now() where key = 'reused'`, [])
  assert.deepEqual([await conflict({}), await conflict({ payload: '{}' })], [null, 'payload'])
  await tx.commit()
})

test('under REPEATABLE READ a key that was committed meanwhile is a serialisation failure, to be tried again', async () => {
  const tx = await begin(db, 'isolation level repeatable read')
  await tx.run('select from outbox.endpoint', [])
  await add(db, 'unseen')
  await assert.rejects(enqueue(tx, message('unseen')), { code: '40001' })
  await tx.rollback()
})

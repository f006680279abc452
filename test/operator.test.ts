// What a person does to an endpoint: each verb one guarded statement, on record with who and why.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  listEndpoints,
  OutledgerError,
  pauseEndpoint,
  putEndpoint,
  removeEndpoint,
  resumeEndpoint,
  reviewEndpoint,
  rotateSecret,
  showEndpoint,
  testEndpoint,
} from '../src/index.ts'
import { deliverOnce, enqueue, keysOf, putClinic } from './support/clinic.ts'
import { testDatabase } from './support/database.ts'
import { gate, startPeer, when } from './support/peer.ts'
import { testSecret } from './support/secret.ts'

const db = await testDatabase()
const peer = await startPeer()

const put = (name: string, more: Partial<Parameters<typeof putEndpoint>[1]> = {}, why?: string) =>
  putEndpoint(db.sql, { name, url: 'https://a.example/in', secret: testSecret(), ...more }, { by: 'ann', why })

const record = (name: string) =>
  db.query<{ who: string; verb: string; why: string | null }>(
    `select who, verb, why from outbox.operation where subject = $1 order by id`,
    name,
  )

const rejected = (code: string, message: RegExp) => (error: unknown) => {
  assert.ok(error instanceof OutledgerError, String(error))
  assert.equal(error.code, code)
  assert.match(error.message, message)
  return true
}

test('a paused endpoint gets nothing until it is resumed; doing either twice changes nothing and is no error', async () => {
  await putClinic(db, peer.url, { name: 'stopped' })
  await enqueue(db, keysOf('stopped', 3), { endpoint: 'stopped' })
  const first = await pauseEndpoint(db.sql, 'stopped', { by: 'ann', why: 'they asked for it' })
  const second = await pauseEndpoint(db.sql, 'stopped', { by: 'ben', why: 'me too' })
  assert.deepEqual([first.changed, second.changed, second.endpoint.pausedReason], [true, false, 'they asked for it'])
  assert.deepEqual(second.endpoint, first.endpoint)
  await deliverOnce(db)
  assert.equal(peer.received.length, 0)
  const [row] = await db.query(`select why_not_yet from outbox.deliveries where key = 'stopped-1'`)
  assert.deepEqual(row, { why_not_yet: 'endpoint paused: they asked for it' })

  const resumed = await resumeEndpoint(db.sql, 'stopped', { by: 'cyd' })
  assert.deepEqual([resumed.changed, resumed.endpoint.pausedAt], [true, null])
  assert.equal((await resumeEndpoint(db.sql, 'stopped', { by: 'cyd' })).changed, false)
  await deliverOnce(db)
  assert.equal(peer.received.length, 3)
  assert.deepEqual((await record('stopped')).slice(1), [
    { who: 'ann', verb: 'endpoint pause', why: 'they asked for it' },
    { who: 'cyd', verb: 'endpoint resume', why: null },
  ])
})

test('another host, region or processor waits for a review, and nothing is sent there before', async () => {
  const next = await startPeer()
  await putClinic(db, peer.url, { name: 'moving', region: 'eu' })
  await enqueue(db, ['moving-1'], { endpoint: 'moving' })
  const before = peer.received.length
  const [from, to] = [new URL(peer.url).host, new URL(next.url).host]
  const changed = await putEndpoint(db.sql, { name: 'moving', url: next.url }, { by: 'ann', why: 'a new data centre' })
  assert.deepEqual([changed.unreviewed, changed.pausedReason], [`host ${from} → ${to}`, `review: host ${from} → ${to}`])
  const further = await putEndpoint(db.sql, { name: 'moving', region: 'us', processor: 'Clinic Ltd', retentionDays: 9 })
  const waits = `host ${from} → ${to}; region eu → us; processor none → "Clinic Ltd"`
  assert.deepEqual([further.unreviewed, further.pausedReason], [waits, `review: ${waits}`])
  await deliverOnce(db)
  assert.deepEqual([peer.received.length, next.received.length], [before, 0])
  await assert.rejects(
    resumeEndpoint(db.sql, 'moving', { by: 'ann' }),
    rejected('endpoint_unreviewed', /host .*review it first: outledger endpoint review moving --why/),
  )
  const { changed: done, endpoint } = await reviewEndpoint(db.sql, 'moving', { by: 'ben', why: 'contract signed' })
  assert.deepEqual([done, endpoint.unreviewed, endpoint.pausedAt, endpoint.pausedReason], [true, null, null, null])
  assert.equal((await reviewEndpoint(db.sql, 'moving', { by: 'ben', why: 'again' })).changed, false)
  await deliverOnce(db)
  assert.deepEqual([peer.received.length, next.received.length], [before, 1])
  const [, moved, , reviewed, ...more] = await record('moving')
  assert.deepEqual(moved, { who: 'ann', verb: 'endpoint put', why: 'a new data centre' })
  assert.deepEqual(reviewed, { who: 'ben', verb: 'endpoint review', why: 'contract signed' })
  assert.deepEqual(more, [])
})

test('what changes nobody’s data waits for nobody, and neither does a new endpoint', async () => {
  assert.equal((await put('same', { region: 'eu', processor: 'Clinic' })).unreviewed, null)
  const row = await put('same', { url: 'https://a.example/out?x=1', timeoutMs: 9_000, class: 'other' })
  assert.deepEqual([row.unreviewed, row.pausedAt], [null, null])
})

test('a pause of a person’s own outlives the review, whether it came before the change or after', async () => {
  for (const order of ['before', 'after']) {
    const name = `own-${order}`
    await put(name)
    const pause = () => pauseEndpoint(db.sql, name, { by: 'ann', why: 'audit' })
    if (order === 'before') await pause()
    await put(name, { region: 'us' })
    if (order === 'after') assert.equal((await pause()).changed, true)
    assert.deepEqual((await put(name, { region: 'asia' })).pausedReason, 'audit', order)
    const { endpoint } = await reviewEndpoint(db.sql, name, { by: 'ben', why: 'fine' })
    assert.deepEqual([endpoint.unreviewed, endpoint.pausedReason], [null, 'audit'], order)
    assert.equal((await resumeEndpoint(db.sql, name)).changed, true)
  }
})

test('a review of a version accepts what was looked at, and not what came after', async () => {
  await putClinic(db, peer.url, { name: 'looked-at' })
  const seen = await put('looked-at', { region: 'eu' })
  await put('looked-at', { processor: 'Elsewhere Ltd' })
  const given = { by: 'ben', why: 'signed', version: seen.version }
  await assert.rejects(
    reviewEndpoint(db.sql, 'looked-at', given),
    rejected('endpoint_changed', /^endpoint looked-at is at version 3 and not 2; .*processor none → "Elsewhere Ltd"/),
  )
  const { endpoint, changed } = await reviewEndpoint(db.sql, 'looked-at', { ...given, version: seen.version + 1 })
  assert.deepEqual([changed, endpoint.unreviewed, endpoint.pausedAt], [true, null, null])
  assert.equal((await reviewEndpoint(db.sql, 'looked-at', given)).changed, false, 'nothing waits any more')
})

test('a put that has read what a review then accepts does not bring the waiting back', async () => {
  await put('raced')
  await put('raced', { region: 'us' })
  const [hold, go] = [gate(), gate()]
  const resolve = async () => {
    hold.open()
    await go.opened
    return process.env.OUTLEDGER_TEST_SECRET as string
  }
  const slow = putEndpoint(db.sql, { name: 'raced', retentionDays: 7 }, { resolve })
  await hold.opened
  await reviewEndpoint(db.sql, 'raced', { by: 'ben', why: 'fine' })
  go.open()
  const row = await slow
  assert.deepEqual([row.retentionDays, row.unreviewed, row.pausedAt], [7, null, null])
})

test('an endpoint with open deliveries is not removed, and the error counts them', async () => {
  await putClinic(db, peer.url, { name: 'used' })
  await enqueue(db, keysOf('used', 3), { endpoint: 'used' })
  await assert.rejects(
    removeEndpoint(db.sql, 'used', { by: 'ann' }),
    rejected('endpoint_in_use', /^endpoint used has 3 open deliveries; let them end/),
  )
  assert.deepEqual(await db.query(`select removed_at, version from outbox.endpoint where name = 'used'`), [
    { removed_at: null, version: 1 },
  ])
  assert.equal((await record('used')).length, 1)
  await deliverOnce(db)
  const { changed, endpoint } = await removeEndpoint(db.sql, 'used', { by: 'ann', why: 'contract over' })
  assert.deepEqual([changed, endpoint.removedAt !== null], [true, true])
  assert.deepEqual((await record('used')).at(-1), { who: 'ann', verb: 'endpoint remove', why: 'contract over' })
  assert.equal((await removeEndpoint(db.sql, 'used')).changed, false)
  await assert.rejects(enqueue(db, ['used-4'], { endpoint: 'used' }), /was removed/)
  for (const verb of [
    () => pauseEndpoint(db.sql, 'used', { why: 'x' }),
    () => resumeEndpoint(db.sql, 'used'),
    () => reviewEndpoint(db.sql, 'used', { why: 'x' }),
    () => testEndpoint(db.sql, 'used'),
    () => rotateSecret(db.sql, 'used', { secret: testSecret() }),
  ])
    await assert.rejects(verb(), rejected('unknown_endpoint', /^endpoint "used" was removed/))
  assert.equal((await showEndpoint(db.sql, 'used')).removedAt, endpoint.removedAt)
})

test('a retired endpoint comes back with a put, still waiting for the review it never had', async () => {
  await put('back')
  await put('back', { region: 'us' })
  await removeEndpoint(db.sql, 'back')
  const again = await put('back', { region: 'us' })
  assert.deepEqual(
    [again.removedAt, again.unreviewed, again.pausedReason],
    [null, 'region none → us', 'review: region none → us'],
  )
})

test('verbs for an endpoint that is not there say so, and those that need a reason ask for it', async () => {
  const nowhere = rejected('unknown_endpoint', /^endpoint "nowhere" does not exist/)
  await assert.rejects(pauseEndpoint(db.sql, 'nowhere', { why: 'x' }), nowhere)
  await assert.rejects(resumeEndpoint(db.sql, 'nowhere'), nowhere)
  await assert.rejects(reviewEndpoint(db.sql, 'nowhere', { why: 'x' }), nowhere)
  await assert.rejects(removeEndpoint(db.sql, 'nowhere'), nowhere)
  await assert.rejects(showEndpoint(db.sql, 'nowhere'), nowhere)
  await assert.rejects(testEndpoint(db.sql, 'nowhere'), nowhere)
  await assert.rejects(rotateSecret(db.sql, 'nowhere', { secret: testSecret() }), nowhere)
  const operations = await db.query(`select count(*) from outbox.operation`)
  const required = rejected('invalid_option', /^option why is required$/)
  await assert.rejects(pauseEndpoint(db.sql, 'same', {} as { why: string }), required)
  await assert.rejects(reviewEndpoint(db.sql, 'same', {} as { why: string }), required)
  for (const [wrong, message] of [
    [{ why: '' }, /^option why is empty$/],
    [{ why: 'x', by: 'a\0' }, /^option by has 2 characters/],
    [{ why: 'x'.repeat(2_001) }, /^option why has 2001 characters; it must be up to 2000/],
  ] as const)
    await assert.rejects(pauseEndpoint(db.sql, 'same', wrong), rejected('invalid_option', message))
  await assert.rejects(removeEndpoint(db.sql, 'a\0'), rejected('invalid_endpoint', /^name "a\\u0000" must be/))
  assert.deepEqual(await db.query(`select count(*) from outbox.operation`), operations)
})

test('an endpoint is shown with its state, what is open for it and what was done to it last', async (t) => {
  const hanging = await startPeer()
  const moment = gate()
  t.after(moment.open)
  hanging.answer(when(moment.opened))
  await putClinic(db, hanging.url, { name: 'shown', concurrency: 1, partitions: 1 }, { by: 'ann', why: 'new' })
  await enqueue(db, ['shown-1', 'shown-2'], { endpoint: 'shown' })
  await enqueue(db, ['shown-3', 'shown-4'], { endpoint: 'shown', orderingKey: 'k', delayMs: 3_600_000 })
  const running = deliverOnce(db, { slots: 1 })
  await hanging.untilReceived(1)
  await pauseEndpoint(db.sql, 'shown', { by: 'ben', why: 'slow' })
  await db.query(
    `update outbox.endpoint set backoff_until = '2999-01-01', tripped_until = '2001-01-01' where name = 'shown'`,
  )
  const { open, operations, ...row } = await showEndpoint(db.sql, 'shown')
  assert.equal(open.total, 4)
  assert.deepEqual([open.due, open.leased, open.scheduled, open.parked, open.blocked], [1, 1, 1, 1, 0])
  assert.deepEqual(
    [row.pausedReason, row.backoffUntil, row.trippedUntil, row.halfOpen],
    ['slow', '2999-01-01T00:00:00.000000Z', '2001-01-01T00:00:00.000000Z', true],
  )
  assert.deepEqual(
    operations.map(({ who, verb, why }) => [who, verb, why]),
    [
      ['ben', 'endpoint pause', 'slow'],
      ['ann', 'endpoint put', 'new'],
    ],
  )
  const listed = (await listEndpoints(db.sql)).find(({ name }) => name === 'shown')
  assert.deepEqual(row, listed)
  moment.open()
  await running
})

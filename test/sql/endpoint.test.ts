import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  type EndpointSettings,
  endpointByName,
  endpointsById,
  listEndpoints,
  putEndpoint,
} from '../../src/sql/endpoint.ts'
import { testDatabase } from '../support/database.ts'
import { endpointSettings } from '../support/ledger.ts'
import { begin } from '../support/session.ts'

const db = await testDatabase()

const FULL = {
  ...{ name: 'full', class: 'payment-ledger', url: 'http://127.0.0.1:1/x?y=z', secret: 'file:/run/secret' },
  ...{ authorization: 'env:BEARER', headers: '{"x-b": "1",  "x-a":"2"}', timeoutMs: 5_000, retryDelayMs: 1_000 },
  ...{ backoffFactor: 1.5, maxDelayMs: 60_000, horizonMs: 30_000_000_000, maxAttempts: 7, keyWindowMs: 60_000_000_000 },
  ...{
    concurrency: 12,
    partitions: 3,
    onDead: 'skip' as const,
    retentionDays: 90,
    allowInsecure: true,
    allowPrivate: true,
  },
} as const satisfies EndpointSettings

const BORN = { version: 1, pausedAt: null, pausedReason: null, removedAt: null }

test('an endpoint comes back as it was put, numbers as numbers, by name, by id and in the list', async () => {
  const put = await putEndpoint(db, FULL, 'ann')
  assert.deepEqual(put, { ...FULL, ...BORN, id: put.id })
  assert.deepEqual(await endpointByName(db, 'full'), put)
  assert.deepEqual(await endpointsById(db, [put.id, 999]), [put])
  assert.deepEqual(await listEndpoints(db), [put])
  assert.equal(await endpointByName(db, 'none'), null)
})

test('a second put changes the same endpoint, counts its version and puts old and new on record', async () => {
  const before = await endpointByName(db, 'full')
  const after = await putEndpoint(db, { ...endpointSettings(), name: 'full' }, 'bob')
  assert.deepEqual(after, { ...endpointSettings(), ...BORN, name: 'full', id: before?.id, version: 2 })
  const operations = await db.query(
    `select who, verb, subject, detail #>> '{old,url}' as old, detail #>> '{new,url}' as new, detail #>> '{new,version}' as version
     from outbox.operation order by id`,
  )
  const verb = { verb: 'endpoint put', subject: 'full' }
  assert.deepEqual(operations, [
    { who: 'ann', ...verb, old: null, new: FULL.url, version: '1' },
    { who: 'bob', ...verb, old: FULL.url, new: 'https://clinic.test/hooks', version: '2' },
  ])
})

test('a put takes a removed endpoint back into service, and a pause survives it', async () => {
  await db.query(
    `update outbox.endpoint set removed_at = now(), paused_at = '2030-01-02T03:04:05.678901Z', paused_reason = 'audit'`,
  )
  const [listed] = await listEndpoints(db)
  assert.match(listed?.removedAt ?? '', /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/)
  const again = await putEndpoint(db, endpointSettings({ name: 'full' }), 'ann')
  assert.deepEqual(
    [again.removedAt, again.pausedAt, again.pausedReason],
    [null, '2030-01-02T03:04:05.678901Z', 'audit'],
  )
})

test('the list is by name, with what was removed last', async () => {
  for (const name of ['zoo', 'abc', 'mid']) await putEndpoint(db, endpointSettings({ name }), 'ann')
  await db.query(`update outbox.endpoint set removed_at = now() where name = 'abc'`)
  assert.deepEqual(
    (await listEndpoints(db)).map((row) => row.name),
    ['full', 'mid', 'zoo', 'abc'],
  )
})

test('two puts of one endpoint at once are two versions, the first ones ever too', async () => {
  for (const version of [1, 3]) {
    const [a, b] = [await begin(db), await begin(db)]
    const first = await putEndpoint(a, endpointSettings({ name: 'raced', retentionDays: 1 }), 'ann')
    const second = putEndpoint(b, endpointSettings({ name: 'raced', retentionDays: 2 }), 'bob')
    await b.untilBlocked()
    await a.commit()
    assert.deepEqual([first.version, (await second).version, (await second).id], [version, version + 1, first.id])
    await b.commit()
    assert.equal((await endpointByName(db, 'raced'))?.retentionDays, 2)
    if (version === 1) continue
    const [last] = await db.query(
      `select detail #>> '{old,retention_days}' as old from outbox.operation order by id desc limit 1`,
    )
    assert.equal(last?.old, '1', 'the second has seen what the first wrote')
  }
})

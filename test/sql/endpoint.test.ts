import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  type EndpointRow,
  type EndpointSettings,
  endpointByName,
  endpointsById,
  listEndpoints,
} from '../../src/sql/endpoint.ts'
import { putEndpoint } from '../../src/sql/endpoint-put.ts'
import type { Executor } from '../../src/sql/executor.ts'
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
    region: 'eu',
    processor: 'Clinic Ltd',
    captureResponse: true,
    statusPolicy: '{"404":"retry"}',
    on409: 'delivered' as const,
    onUnknown: 'review' as const,
    keyFormat: 'sf-string' as const,
    allowInsecure: true,
    allowPrivate: true,
  },
} as const satisfies EndpointSettings

async function put(on: Executor, settings: EndpointSettings, by: string, version: number | null): Promise<EndpointRow> {
  const row = await putEndpoint(on, settings, { by, version, changes: true })
  assert.ok(row)
  return row
}

const BORN = {
  ...{
    version: 1,
    pausedAt: null,
    pausedReason: null,
    backoffUntil: null,
    trippedUntil: null,
    halfOpen: false,
    removedAt: null,
  },
  ...{ unreviewed: null, previousSecrets: [] },
}

test('an endpoint comes back as it was put, numbers as numbers, by name, by id and in the list', async () => {
  const born = await put(db, FULL, 'ann', null)
  assert.deepEqual(born, { ...FULL, ...BORN, id: born.id })
  assert.deepEqual(await endpointByName(db, 'full'), born)
  assert.deepEqual(await endpointsById(db, [born.id, 999]), [born])
  assert.deepEqual(await listEndpoints(db), [born])
  assert.equal(await endpointByName(db, 'none'), null)
})

test('a second put changes the same endpoint, counts its version and puts old and new on record', async () => {
  const before = await endpointByName(db, 'full')
  const after = await put(db, { ...endpointSettings(), name: 'full' }, 'bob', 1)
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
  const again = await put(db, endpointSettings({ name: 'full' }), 'ann', 2)
  assert.deepEqual(
    [again.removedAt, again.pausedAt, again.pausedReason],
    [null, '2030-01-02T03:04:05.678901Z', 'audit'],
  )
})

test('the list is by name, with what was removed last', async () => {
  for (const name of ['zoo', 'abc', 'mid']) await put(db, endpointSettings({ name }), 'ann', null)
  await db.query(`update outbox.endpoint set removed_at = now() where name = 'abc'`)
  assert.deepEqual(
    (await listEndpoints(db)).map((row) => row.name),
    ['full', 'mid', 'zoo', 'abc'],
  )
})

test('of two puts at once under one version, the second changes nothing and says so', async () => {
  for (const version of [null, 1]) {
    const [a, b] = [await begin(db), await begin(db)]
    const first = await put(a, endpointSettings({ name: 'raced', retentionDays: 1 }), 'ann', version)
    const second = putEndpoint(b, endpointSettings({ name: 'raced', retentionDays: 2 }), {
      by: 'bob',
      version,
      changes: true,
    })
    await b.untilBlocked()
    await a.commit()
    assert.equal(await second, null)
    await b.commit()
    assert.deepEqual(await endpointByName(db, 'raced'), first)
  }
  assert.deepEqual(await db.query(`select who from outbox.operation where subject = 'raced'`), [
    { who: 'ann' },
    { who: 'ann' },
  ])
})

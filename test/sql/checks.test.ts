import assert from 'node:assert/strict'
import { test } from 'node:test'
import { testDatabase } from '../support/database.ts'
import { addEndpoint } from '../support/ledger.ts'
import { begin } from '../support/session.ts'

const db = await testDatabase()
await addEndpoint(db)

// A row of each table that the code may write, and values that spoil it, by the constraint that must refuse them.
const GOOD: Record<string, Record<string, string>> = {
  delivery: {
    ...{ key: `'k'`, endpoint_id: '1', lane: '1024', type: `'t'`, payload: `'{}'`, payload_sha256: `sha256('{}')` },
    ...{ discovered_by: `'app'`, scheduled_at: 'now()' },
  },
  queue: { delivery_id: '1', next_attempt_at: 'now()', endpoint_id: '1', lane: '1024' },
  attempt: {
    ...{ delivery_id: '1', number: '1', token: 'gen_random_uuid()', started_at: 'now()', finished_at: 'now()' },
    ...{ outcome: `'rejected'`, verdict: `'dead'`, reason: `'gone'`, poller: `'p'` },
  },
  receipt: {
    ...{ delivery_id: '1', ended_at: 'now()', delete_after: 'now()', attempts: '1', ending: `'dead'` },
    ...{ certainty: `'rejected'`, reason: `'gone'` },
  },
}

const LEASED = { token: 'gen_random_uuid()', leased_at: 'now()', leased_by: `'p'` }

const BAD: Record<string, [constraint: string, spoil: Record<string, string>][]> = {
  delivery: [
    ['delivery_key', { key: `''` }],
    ['delivery_key', { key: `'a b'` }],
    ['delivery_key', { key: `repeat('k', 256)` }],
    ['delivery_payload', { payload: 'null' }],
    ['delivery_payload', { payload_ref: `'s3://x'` }],
    ['delivery_payload', { erased_at: 'now()' }],
    ['delivery_digest_of_payload', { payload_sha256: 'null' }],
    ['delivery_digest', { payload_sha256: `'\\x00'` }],
    ['delivery_scheduled', { scheduled_at: `'infinity'` }],
    ['delivery_retention', { retention_days: '-1' }],
    ['delivery_retention', { retention_days: '36501' }],
  ],
  queue: [
    ['queue_lease', { token: 'gen_random_uuid()' }],
    ['queue_lease', { leased_at: 'now()', leased_by: `'p'` }],
    ['queue_lease_ends', { ...LEASED, next_attempt_at: `'infinity'`, ordering_key: `'o'` }],
    ['queue_blocked', { blocked_reason: `'gone'`, ordering_key: `'o'` }],
    ['queue_parked_has_key', { next_attempt_at: `'infinity'` }],
    ['queue_parked_has_key', { next_attempt_at: `'infinity'`, blocked_reason: `'gone'` }],
    ['queue_counts', { attempts: '1', base: '2' }],
    ['queue_counts', { attempts: '-1', base: '-1' }],
    ['queue_counts', { lost: '-1' }],
  ],
  attempt: [
    ['attempt_number', { number: '0' }],
    ['attempt_outcome', { outcome: `'failed'` }],
    ['attempt_verdict', { verdict: `'release'` }],
    ['attempt_delivered', { reason: 'null' }],
    ['attempt_sent', { outcome: `'delivered'` }],
    ['attempt_sent', { outcome: `'delivered'`, request_sent: 'false' }],
    ['attempt_time', { finished_at: `now() - interval '1 second'` }],
  ],
  receipt: [
    ['receipt_ending', { ending: `'retry'` }],
    ['receipt_certainty', { certainty: `'maybe'` }],
    ['receipt_delivered', { ending: `'delivered'` }],
    ['receipt_delivered', { certainty: `'delivered'` }],
    ['receipt_reason', { reason: 'null' }],
    ['receipt_retention', { delete_after: `now() - interval '1 second'` }],
  ],
}

const ENDPOINT: [constraint: string, change: string][] = [
  ['endpoint_name', `name = ''`],
  ['endpoint_name', `name = 'a b'`],
  ['endpoint_class', `class = repeat('c', 65)`],
  ['endpoint_url', `url = 'http://x'`],
  ['endpoint_url', `url = 'ftp://x', allow_insecure = true`],
  ['endpoint_timeout', 'timeout_ms = 0'],
  ['endpoint_retry', 'retry_delay_ms = -1'],
  ['endpoint_retry', 'backoff_factor = 0.9'],
  ['endpoint_retry', 'max_delay_ms = -1'],
  ['endpoint_limits', 'horizon_ms = -1'],
  ['endpoint_limits', 'max_attempts = 0'],
  ['endpoint_key_window', 'key_window_ms = horizon_ms - 1'],
  ['endpoint_partitions', 'partitions = 0'],
  ['endpoint_partitions', 'partitions = concurrency + 1'],
  ['endpoint_partitions', 'partitions = 1025, concurrency = 2000'],
  ['endpoint_on_dead', `on_dead = 'drop'`],
  ['endpoint_retention', 'retention_days = -1'],
  ['endpoint_on_409', `on_409 = 'ignore'`],
  ['endpoint_on_unknown', `on_unknown = 'dead'`],
  ['endpoint_key_format', `key_format = 'quoted'`],
  ['endpoint_health', 'failures = -1'],
  ['endpoint_health', 'rejections = -1'],
  ['endpoint_health', 'trip_ms = 0'],
  ['endpoint_paused', 'paused_at = now()'],
  ['endpoint_paused', `paused_reason = 'audit'`],
]

const VERSION: [constraint: string, change: string][] = [['version_only', '"only" = false']]

const insert = (table: string, row: Record<string, string>) =>
  `insert into outbox.${table} (${Object.keys(row).join(', ')}) values (${Object.values(row).join(', ')})`

for (const [table, good] of Object.entries(GOOD)) {
  test(`${table} refuses each row that the code must not write`, async () => {
    for (const [constraint, spoil] of BAD[table] ?? [])
      await assert.rejects(
        db.query(insert(table, { ...good, ...spoil })),
        { code: '23514', constraint_name: constraint },
        JSON.stringify(spoil),
      )
    const session = await begin(db)
    await session.run(insert(table, good), [])
    await session.rollback()
  })
}

test('endpoint refuses settings that contradict each other', async () => {
  for (const [constraint, change] of ENDPOINT)
    await assert.rejects(
      db.query(`update outbox.endpoint set ${change}`),
      { code: '23514', constraint_name: constraint },
      change,
    )
  await db.query(
    `update outbox.endpoint set url = 'http://x', allow_insecure = true, paused_at = now(), paused_reason = 'audit'`,
  )
})

test('version has one row', async () => {
  for (const [constraint, change] of VERSION)
    await assert.rejects(
      db.query(`update outbox.version set ${change}`),
      { code: '23514', constraint_name: constraint },
      change,
    )
  await assert.rejects(db.query('insert into outbox.version (major) values (2)'), { code: '23505' })
})

test('no CHECK is without a row here that it refuses', async () => {
  const named = [...Object.values(BAD).flat(), ...ENDPOINT, ...VERSION].map(([constraint]) => constraint)
  const checks = await db.query<{ name: string }>(
    `select conname::text as name from pg_constraint where connamespace = 'outbox'::regnamespace and contype = 'c' order by 1`,
  )
  assert.deepEqual(
    checks.map(({ name }) => name),
    [...new Set(named)].sort(),
  )
})

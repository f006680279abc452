import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EnqueueRow } from '../../src/sql/enqueue.ts'
import { enqueue } from '../../src/sql/enqueue.ts'
import { enqueueMany } from '../../src/sql/enqueue-many.ts'
import { testDatabase } from '../support/database.ts'
import { addEndpoint, message } from '../support/ledger.ts'

const db = await testDatabase()
let endpoints = 0

async function clinic(partitions = 1) {
  const endpoint = await addEndpoint(db, { name: `clinic-${++endpoints}`, partitions })
  const of = (key: string, more: Partial<EnqueueRow> = {}) => message(key, { endpoint: endpoint.name, ...more })
  const many = (keys: readonly string[], more: Partial<EnqueueRow> = {}) =>
    enqueueMany(
      db,
      keys.map((key) => of(key, more)),
    )
  return { endpoint, of, many }
}

const EXTREMES: Partial<EnqueueRow>[] = [
  {},
  { payload: ' {"raw":1e2, "b":"\\u0000", "b":9007199254740993} ' },
  { payload: '["a\\"b\\\\c, {NULL}"]', orderingKey: 'NULL', correlationId: 'c,"\\{}' },
  { payload: null, payloadRef: 's3://ü "x"', delayMs: '3600000', retentionDays: '7' },
  { notBefore: '2001-01-01Z', traceparent: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`, orderingKey: 'a,b' },
  { type: 'other.type', orderingKey: 'a,b' },
]

const COLUMNS = `d.endpoint_id, d.type, d.ordering_key, d.payload::text as payload, d.payload_ref, d.payload_sha256, d.payload_bytes,
  d.discovered_by, d.scheduled_at - d.discovered_at as wait, d.correlation_id, d.traceparent, d.retention_days, d.erased_at, d.replay_of,
  q.delivery_id is not null as queued, case when isfinite(q.next_attempt_at) then (q.next_attempt_at - d.scheduled_at)::text else 'parked' end as due,
  q.endpoint_id as at, q.ordering_key as in_order, q.attempts, q.token, q.lost, d.lane - q.lane as apart`

test('many are written as each alone would be, with the bytes as they are', async () => {
  const { of } = await clinic(8)
  const { of: other } = await clinic(8)
  for (const [i, more] of EXTREMES.entries()) await enqueue(db, other(`alone-${i}`, more))
  const answers = await enqueueMany(
    db,
    EXTREMES.map((more, i) => of(`many-${i}`, more)),
  )
  assert.equal(answers.length, EXTREMES.length)
  for (const answer of answers)
    assert.deepEqual(answer, { id: answer.id, inserted: true, conflict: null, purged: false })
  const rows = (prefix: string) =>
    db.query(
      `select ${COLUMNS} from outbox.delivery d join outbox.queue q on q.delivery_id = d.id where d.key like $1 order by d.key`,
      `${prefix}-%`,
    )
  const [alone, many] = [await rows('alone'), await rows('many')]
  assert.equal(many.length, EXTREMES.length)
  const here = (row: object) => ({ ...row, endpoint_id: null, at: null })
  assert.deepEqual(many.map(here), alone.map(here))
  assert.deepEqual(
    many.map((row) => (row as { payload: string }).payload),
    EXTREMES.map(({ payload = '{"patient":1842}' }) => payload),
  )
})

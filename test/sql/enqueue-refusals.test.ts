import assert from 'node:assert/strict'
import { test } from 'node:test'
import { testDatabase } from '../support/database.ts'
import { addEndpoint } from '../support/ledger.ts'

const db = await testDatabase()
await addEndpoint(db)
await addEndpoint(db, { name: 'removed' })
await db.query(`update outbox.endpoint set removed_at = now() where name = 'removed'`)

const quoted = (value: string | null): string => (value === null ? 'null' : `'${value.replaceAll("'", "''")}'`)

/** As somebody types it into psql, or a trigger says it: literals, by name. */
const call = (more: Record<string, string | null>) => {
  const values = { p_endpoint: 'clinic', p_key: 'k', p_type: 't', p_payload: '{"ssn":"SECRET"}', ...more }
  const list = Object.entries(values).map(([name, value]) => `${name} => ${quoted(value)}`)
  return db.sql.unsafe(`select * from outbox.enqueue(${list.join(', ')})`)
}

const BIG = 262_144
const secretOf = (bytes: number): string => `{"ssn":"SECRET${'x'.repeat(bytes - 16)}"}`

const WRONG: [column: string, given: Record<string, string | null>, message: RegExp][] = [
  [
    'endpoint',
    { p_endpoint: 'clinik' },
    /^outledger: endpoint 'clinik' does not exist; create it with "outledger endpoint put"$/,
  ],
  ['endpoint', { p_endpoint: null }, /endpoint null does not exist/],
  ['endpoint', { p_endpoint: 'removed' }, /endpoint 'removed' was removed; enqueue to another one/],
  ['key', { p_key: null }, /key is missing; it must be 1 to 255 of A-Z a-z 0-9 \. _ : -/],
  ['key', { p_key: '' }, /key is 0 bytes long; it must be 1 to 255/],
  ['key', { p_key: 'a b' }, /key is 3 bytes long; it must be 1 to 255 of/],
  ['key', { p_key: 'k'.repeat(256) }, /key is 256 bytes long; it must be 1 to 255/],
  ['type', { p_type: null }, /type is missing; it must be 1 to 200 printable/],
  ['type', { p_type: 'ä' }, /type is 2 bytes long; it must be 1 to 200 printable ASCII/],
  ['type', { p_type: 't'.repeat(201) }, /type is 201 bytes long; it must be 1 to 200/],
  ['payload', { p_payload: null }, /payload or payload_ref must be given, and only one of them/],
  ['payload', { p_payload_ref: 's3://x' }, /payload or payload_ref must be given, and only one of them/],
  [
    'payload',
    { p_payload: secretOf(BIG + 1) },
    /payload is 262145 bytes long; the limit is 262144: store it elsewhere and pass payload_ref/,
  ],
  [
    'payload',
    { p_payload: `{"ssn":"SECRET${'ä'.repeat(BIG / 2)}"}` },
    /payload is 262160 bytes long; the limit is 262144/,
  ],
  ['payload', { p_payload: '{"ssn": SECRET}' }, /payload of 15 bytes is not valid JSON/],
  ['payload', { p_payload: '{"ssn":"SECRET"} {}' }, /payload of 19 bytes is not valid JSON/],
  ['payload', { p_payload: '{"SECRET":"\\uZZZZ"}' }, /payload of 19 bytes is not valid JSON/],
  ['payload', { p_payload: `${'['.repeat(BIG - 8)}"SECRET"` }, /payload of 262144 bytes is not valid JSON/],
  ['payload', { p_payload: '' }, /payload of 0 bytes is not valid JSON/],
  ['payload', { p_payload: '"SECRET"' }, /payload is a JSON string; it must be an object or an array/],
  ['payload', { p_payload: '1842' }, /payload is a JSON number/],
  ['payload', { p_payload: 'null' }, /payload is a JSON null/],
  ['payload_ref', { p_payload: null, p_payload_ref: '' }, /payload_ref is 0 bytes long; it must be 1 to 2000/],
  [
    'payload_ref',
    { p_payload: null, p_payload_ref: 'r'.repeat(2_001) },
    /payload_ref is 2001 bytes long; it must be 1 to 2000/,
  ],
  ['ordering_key', { p_ordering_key: '' }, /ordering_key is 0 bytes long; it must be 1 to 400/],
  ['ordering_key', { p_ordering_key: 'o'.repeat(401) }, /ordering_key is 401 bytes long; it must be 1 to 400/],
  ['correlation_id', { p_correlation_id: 'a\nb' }, /correlation_id is 3 bytes long; it must be 1 to 255 printable/],
  ['traceparent', { p_traceparent: '00-1' }, /traceparent is 4 bytes long; it must be the 55 characters/],
  ['retention_days', { p_retention_days: '-1' }, /retention_days must be a whole number of days, 0 to 36500/],
  ['retention_days', { p_retention_days: '36501' }, /retention_days must be a whole number of days, 0 to 36500/],
  ['delay_ms', { p_delay_ms: '-1' }, /delay_ms must be a whole number of milliseconds, 0 to 315360000000/],
  ['delay_ms', { p_delay_ms: '1.5' }, /delay_ms must be a whole number/],
  ['delay_ms', { p_delay_ms: '315360000001' }, /delay_ms must be a whole number of milliseconds, 0 to 315360000000/],
  ['delay_ms', { p_delay_ms: '1', p_not_before: '2001-01-01Z' }, /delay_ms and not_before exclude each other/],
  ...[
    'soon',
    '',
    'infinity',
    '9999-01-01Z',
    '300000-01-01Z',
    '2030-02-30T00:00:00Z',
    '2030-01-01 00:00 Mars/Olympus',
    '2030-01-01T00:00:00+99',
  ].map((text): (typeof WRONG)[number] => [
    'not_before',
    { p_not_before: text },
    /not_before must be a timestamp with time zone at most ten years ahead/,
  ]),
  ['discovered_by', { p_discovered_by: '' }, /discovered_by must be 1 to 200 bytes/],
]

// case C47
for (const [column, given, message] of WRONG) {
  const shown = JSON.stringify(given).slice(0, 60)
  test(`SQL refuses ${column} ${shown}, names the field and writes nothing`, async () => {
    const error = await call(given).then(
      () => assert.fail('accepted'),
      (refusal) => refusal as Record<string, string>,
    )
    assert.deepEqual([error.code, error.column_name], ['22023', column], error.message)
    assert.match(error.message ?? '', message)
    assert.match(error.message ?? '', /^outledger: /)
    for (const field of ['message', 'detail', 'where', 'hint', 'internal_query'])
      assert.doesNotMatch(error[field] ?? '', /SECRET|\[\[\[/, field)
    const [left] = await db.query(
      'select (select count(*)::int from outbox.delivery) as d, (select count(*)::int from outbox.queue) as q',
    )
    assert.deepEqual(left, { d: 0, q: 0 }, 'nothing is written')
  })
}

// case C47
test('what is just within the limits is taken', async () => {
  for (const [i, given] of [
    {
      p_key: 'k'.repeat(255),
      p_type: 't'.repeat(200),
      p_ordering_key: 'o'.repeat(400),
      p_correlation_id: 'c'.repeat(255),
    },
    { p_payload: secretOf(BIG), p_retention_days: '36500', p_delay_ms: '315360000000' },
    { p_payload: null, p_payload_ref: 'r'.repeat(2_000), p_retention_days: '0', p_not_before: '2001-01-01Z' },
    { p_payload: '[]' },
  ].entries()) {
    const [row] = await call({ p_key: `ok-${i}`, ...given })
    assert.equal(row?.inserted, true)
  }
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isDelayMs, isTraceparent, textProblem } from '../../src/core/message.ts'
import { putEndpoint } from '../../src/index.ts'
import { KEYS } from '../core/keys.ts'
import { testDatabase } from '../support/database.ts'
import { testSecret } from '../support/secret.ts'

const db = await testDatabase()
await putEndpoint(db.sql, { name: 'clinic', url: 'https://clinic.example/', secret: testSecret() })

interface Refusal {
  readonly code: string
  readonly column_name?: string
  readonly constraint_name?: string
}

/** Null when the statement went through, else what Postgres said. */
const refusalOf = (statement: Promise<unknown>): Promise<Refusal | null> =>
  statement.then(
    () => null,
    (error) => error,
  )

/** U+0000 has no place in any text of Postgres: the server refuses the parameter before anybody looks at it. */
const NO_TEXT = '22021'

const INSERT = `insert into outbox.delivery (key, endpoint_id, lane, type, payload, payload_sha256, discovered_by, scheduled_at)
  values ($1, 1, 0, 'a', '{}', sha256(''), 'app', now())`

class Undo extends Error {}

/** What the table itself says; a row that it takes is taken back. */
const tableRefusal = (key: string): Promise<Refusal | null> =>
  refusalOf(
    db.sql.begin(async (tx) => {
      await tx.unsafe(INSERT, [key])
      throw new Undo()
    }),
  ).then((error) => (error instanceof Undo ? null : error))

/** What the SQL function says to one argument that differs from a good call. */
function functionRefusal(argument: string, value: string): Promise<Refusal | null> {
  const call = { p_endpoint: 'clinic', p_key: `for-${argument}`, p_type: 'a', p_payload: '{}', [argument]: value }
  const given = Object.entries({ ...call, ...(argument === 'p_payload_ref' ? { p_payload: null } : {}) })
  const list = given.map(([name], i) => `${name} => $${i + 1}`).join(', ')
  return refusalOf(db.query(`select outbox.enqueue(${list})`, ...given.map(([, one]) => one)))
}

// case C47
for (const [why, key, good] of KEYS) {
  test(`TypeScript, the SQL function and the table agree on a key: ${why}`, async () => {
    const [inserted, called] = [await tableRefusal(key), await functionRefusal('p_key', key)]
    assert.equal(textProblem({ key }) === null, good, 'TypeScript')
    if (good) assert.deepEqual([called, inserted], [null, null])
    else if (key.includes('\0')) assert.deepEqual([called?.code, inserted?.code], [NO_TEXT, NO_TEXT])
    else {
      assert.deepEqual([called?.code, called?.column_name], ['22023', 'key'])
      assert.deepEqual([inserted?.code, inserted?.constraint_name], ['23514', 'delivery_key'])
    }
  })
}

test('the good keys, and they alone, are in the table', async () => {
  const rows = await db.query<{ key: string }>('select key from outbox.delivery order by key collate "C"')
  const good = KEYS.filter(([, , taken]) => taken).map(([, key]) => key)
  assert.deepEqual(
    rows.map(({ key }) => key),
    good.sort(),
  )
})

const inTypeScript = (field: string) => (value: string) => textProblem({ [field]: value }) === null
const PRINTABLE = ['a', '!', '~', 'payment.captured/v2', '', ' ', 'a b', 'a\n', '\x7f', 'é', 'a\0', '\ud83e']
const ANY_TEXT = ['a', ' ', 'Patient 7 – Zoë', '🩺', '\n', '', 'a\0']

/** The other texts: the values that lie on either side of each limit. */
const fields: readonly (readonly [field: string, taken: (value: string) => boolean, values: readonly string[]])[] = [
  ['type', inTypeScript('type'), [...PRINTABLE, 't'.repeat(200), 't'.repeat(201)]],
  ['correlation_id', inTypeScript('correlationId'), [...PRINTABLE, 'c'.repeat(255), 'c'.repeat(256)]],
  ['ordering_key', inTypeScript('orderingKey'), [...ANY_TEXT, 'é'.repeat(200), `a${'é'.repeat(200)}`]],
  ['payload_ref', inTypeScript('payloadRef'), [...ANY_TEXT, 'r'.repeat(2_000), 'r'.repeat(2_001)]],
  [
    'traceparent',
    isTraceparent,
    ['0', '0'.repeat(54), '0'.repeat(55), '0'.repeat(56), 'A'.repeat(55), `${'0'.repeat(54)}\n`],
  ],
  ['delay_ms', (value) => isDelayMs(Number(value)), ['0', '315360000000', '315360000001', '-1', '1.5', '9'.repeat(30)]],
]

// case C47
for (const [field, taken, values] of fields) {
  test(`TypeScript and the SQL function agree on ${field}`, async () => {
    assert.deepEqual(new Set(values.map(taken)), new Set([true, false]))
    for (const value of values) {
      const refused = await functionRefusal(`p_${field}`, value)
      const wanted = taken(value) ? null : value.includes('\0') ? NO_TEXT : field
      assert.equal(refused && (refused.column_name ?? refused.code), wanted, JSON.stringify(value.slice(0, 80)))
    }
  })
}

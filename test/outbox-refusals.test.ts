import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { drizzle } from 'drizzle-orm/postgres-js'
import postgres from 'postgres'
import { outbox } from '../src/index.ts'
import { testDatabase } from './support/database.ts'
import { addEndpoint } from './support/ledger.ts'

const db = await testDatabase()
await addEndpoint(db)
const client = postgres(db.url, { max: 2, fetch_types: false, onnotice: () => {} })
after(() => client.end({ timeout: 1 }))
// Its errors name all parameters: through it, too, no payload may come out.
const orm = drizzle(client)

const GOOD = { key: 'k', endpoint: 'clinic', type: 't', payload: { ssn: 'SECRET' } }

const cycle: Record<string, unknown> = {}
cycle.self = cycle

const WRONG: [message: RegExp, given: object, code?: string][] = [
  [/^payload is or contains what has no JSON form \(Buffer\)/, { payload: Buffer.from('{}') }],
  [/^payload is or contains what has no JSON form \(Uint8Array\)/, { payload: new Uint8Array(2) }],
  [/^payload is or contains what has no JSON form \(Map\)/, { payload: new Map([['ssn', 'SECRET']]) }],
  [/^key is missing$/, { key: undefined }],
  [/^key is 0 bytes long; it must be 1 to 255 of A-Z a-z 0-9 \. _ : -$/, { key: '' }],
  [/^key is 3 bytes long/, { key: 'a b' }],
  [/^key is 256 bytes long/, { key: 'k'.repeat(256) }],
  [/^key is a number; it must be a string, 1 to 255/, { key: 1842 }],
  [/^key is an object/, { key: null }],
  [/^endpoint is not the name of an endpoint$/, { endpoint: undefined }],
  [/^endpoint is not the name of an endpoint$/, { endpoint: 1 }],
  [/^endpoint is not the name of an endpoint$/, { endpoint: 'clin\0ic' }],
  [
    /^endpoint 'clinik' does not exist; create it with "outledger endpoint put"$/,
    { endpoint: 'clinik' },
    'unknown_endpoint',
  ],
  [/^type is missing$/, { type: undefined }],
  [
    /^type is 201 bytes long; it must be 1 to 200 printable ASCII characters without spaces$/,
    { type: 't'.repeat(201) },
  ],
  [/^type is 2 bytes long/, { type: 'ü' }],
  [/^payload or payloadRef must be given, and only one of them$/, { payload: undefined }],
  [/^payload or payloadRef must be given, and only one of them$/, { payloadRef: 's3://x' }],
  [/^payload is null; it must be an object, an array, or a string of JSON text$/, { payload: null }],
  [/^payload is a number/, { payload: 1842 }],
  [/^payload is a function/, { payload: () => {} }],
  [/^payload is not a JSON object or array$/, { payload: '"SECRET"' }],
  [/^payload is not a JSON object or array$/, { payload: { toJSON: () => 'SECRET' } }],
  [/^payload is not a JSON object or array$/, { payload: { toJSON: () => undefined } }],
  [/^payload of 16 bytes is not valid JSON$/, { payload: '{"ssn":"SECRET",' }],
  [/^payload is or contains what has no JSON form \(NaN\)/, { payload: { cents: Number.NaN } }],
  [/^payload is or contains what has no JSON form \(-Infinity\)/, { payload: [[Number.NEGATIVE_INFINITY]] }],
  [/^payload cannot be serialised: it contains a cycle, a BigInt, or something that throws/, { payload: cycle }],
  [/^payload cannot be serialised: it contains a cycle, a BigInt/, { payload: { n: 1n } }],
  [/^payload contains a raw U\+0000 or a lone surrogate/, { payload: '{"a":"SECRET\0"}' }],
  [/^payload contains a raw U\+0000 or a lone surrogate/, { payload: '{"a":"SECRET\ud800"}' }],
  [
    /^payload is 262145 bytes long; the limit is 262144: store it elsewhere and pass payloadRef$/,
    { payload: { a: 'x'.repeat(262_137) } },
  ],
  [
    /^payloadRef is 2001 bytes long; it must be 1 to 2000 bytes$/,
    { payload: undefined, payloadRef: 'r'.repeat(2_001) },
  ],
  [/^payloadRef is 0 bytes long/, { payload: undefined, payloadRef: '' }],
  [/^orderingKey is 402 bytes long; it must be 1 to 400 bytes$/, { orderingKey: 'ü'.repeat(201) }],
  [/^orderingKey is 0 bytes long/, { orderingKey: '' }],
  [/^orderingKey is 2 bytes long/, { orderingKey: 'a\0' }],
  [/^delayMs is -1; it must be a whole number of milliseconds up to ten years$/, { delayMs: -1 }],
  [/^delayMs is 1\.5;/, { delayMs: 1.5 }],
  [/^delayMs is NaN;/, { delayMs: Number.NaN }],
  [/^delayMs is 5;/, { delayMs: '5' }],
  [/^delayMs is 315360000001;/, { delayMs: 315_360_000_001 }],
  [/^delayMs and notBefore exclude each other: give one of them$/, { delayMs: 1, notBefore: new Date(0) }],
  [/^notBefore is an invalid Date$/, { notBefore: new Date('soon') }],
  [/^notBefore must be a timestamp with time zone at most ten years ahead$/, { notBefore: 'soon' }],
  [/^notBefore must be a timestamp/, { notBefore: '2030-01-01 00:00 Mars/Olympus' }],
  [/^notBefore must be a timestamp/, { notBefore: new Date('9999-01-01') }],
  [/^notBefore must be a Date, or text of a time with its time zone$/, { notBefore: '2030-01-01Z\0' }],
  [/^notBefore must be a Date, or text of a time with its time zone$/, { notBefore: 1_893_456_000_000 }],
  ...[
    ...[
      '2030-01-01',
      '2030-01-01 10:00',
      '2030-01-01T10:00:00.123',
      '20300101T100000',
      '2030/01/01 10:00',
      '1.2.2030 10:00',
    ],
    ...['1/2/2030, 5:10:45 AM', '2030-01-01 10:00 PM', 'Jan 1 2030', 'Tue Jan 01 2030', 'tomorrow', ''],
  ].map((notBefore): [RegExp, object] => [
    /^notBefore must be a Date, or text of a time with its time zone$/,
    { notBefore },
  ]),
  [/^correlationId is 3 bytes long; it must be 1 to 255 printable ASCII/, { correlationId: 'a b' }],
  [/^correlationId is an object/, { correlationId: null }],
  [/^traceparent must be the 55 characters of a W3C traceparent$/, { traceparent: '00-1' }],
  [/^retentionDays is 36501; it must be a whole number of days, 0 to 36500$/, { retentionDays: 36_501 }],
  [/^retentionDays is -1;/, { retentionDays: -1 }],
  [/^"orderingkey" is no field of a message; did you mean "orderingKey"\?$/, { orderingkey: 'o' }],
  [/^"delay" is no field of a message/, { delay: 5 }],
  [/^"zzzzzzzzzz" is no field of a message$/, { zzzzzzzzzz: 1 }],
]

// case C47
test('each malformed field is refused in our words before anything is written', async () => {
  for (const [message, given, code = 'invalid_message'] of WRONG) {
    const error = await orm
      .transaction((tx) => outbox.enqueue(tx, { ...GOOD, ...given }))
      .then(
        () => assert.fail(`accepted: ${message}`),
        (refusal) => refusal as Error & { code: string },
      )
    assert.equal(error.code, code, `${message}: ${error}`)
    assert.match(error.message, message)
    // Neither the message nor what hangs on it carries the payload into a log.
    assert.doesNotMatch(JSON.stringify([error.message, error.stack, error.cause ?? null]), /SECRET/)
  }
  assert.deepEqual(await db.query('select from outbox.delivery'), [])
})

test('what is no message at all is refused like any bad message', async () => {
  for (const given of [null, undefined, 'capture-1842'] as never[]) {
    await assert.rejects(outbox.enqueueStandalone(db.sql, given), /^OutledgerError: message is not an object$/)
  }
})

test('a hole among many messages is no message either', async () => {
  // biome-ignore lint/suspicious/noSparseArray: it is what is tested
  const holed = [GOOD, , GOOD] as (typeof GOOD)[]
  await assert.rejects(
    db.sql.begin((tx) => outbox.enqueueMany(tx, holed)),
    /^OutledgerError: messages\[1\]: message is not an object$/,
  )
})

test('a client whose rows hold nothing, or that fails without a reason, is not taken at its word', async () => {
  for (const rows of [[{}], [], [{ id: '1', inserted: true, conflict: null, purged: false }]])
    await assert.rejects(outbox.enqueueStandalone({ run: async () => rows } as never, GOOD), {
      code: 'unknown_client',
      message: /gave back no row as the database has sent it/,
    })
  for (const reason of [null, undefined])
    await assert.rejects(
      outbox.enqueueStandalone({ run: () => Promise.reject(reason) } as never, GOOD),
      /^Error: the client gave no reason$/,
    )
})

test('a transaction of postgres.js that has ended is none any more', async () => {
  let ended: unknown
  await db.sql.begin(async (tx) => {
    ended = tx
  })
  await assert.rejects(outbox.enqueue(ended as never, GOOD), { code: 'not_a_transaction' })
  assert.deepEqual(await db.query('select from outbox.delivery'), [])
})

test('what is no key finds no delivery, and says so', async () => {
  for (const key of [undefined, null, 5] as never[])
    await assert.rejects(outbox.get(db.sql, key), {
      code: 'invalid_option',
      message: /^key is (null|a \w+); it must be a string$/,
    })
  await assert.rejects(outbox.list(db.sql, null as never), { code: 'invalid_option' })
})

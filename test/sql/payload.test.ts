import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { after, test } from 'node:test'
import { drizzle } from 'drizzle-orm/postgres-js'
import postgres from 'postgres'
import { outbox } from '../../src/index.ts'
import { testDatabase } from '../support/database.ts'
import { addEndpoint, lease } from '../support/ledger.ts'

const db = await testDatabase()
const endpoint = await addEndpoint(db)
// drizzle changes the client that it is given.
const client = postgres(db.url, { max: 2, fetch_types: false, onnotice: () => {} })
after(() => client.end({ timeout: 1 }))
const orm = drizzle(client)

const WAYS = {
  'postgres.js': (message: outbox.Message) => db.sql.begin((tx) => outbox.enqueue(tx, message)),
  drizzle: (message: outbox.Message) => orm.transaction((tx) => outbox.enqueue(tx, message)),
}

const TEXTS = [
  ['escapes of U+0000', '{"a":"\\u0000","\\u0000":[]}'],
  ['escapes of lone surrogates', '{"a":"\\ud800","b":"\\uDFFF\\ud83d"}'],
  [
    '64-bit integers and more digits',
    '{"a":9223372036854775807,"b":123456789012345678901234567890,"c":0.1000000000000000055}',
  ],
  ['other spellings of numbers', '{"a":1e2,"b":1E+2,"c":1.0,"d":-0,"e":-0.0}'],
  ['duplicate keys, and keys in their order', '{"b":1,"a":2,"b":3,"":4}'],
  ['whitespace', ' \t\r\n{ "a" : [ 1 , 2 ] }\n\n'],
  ['letters beyond ASCII, as they are and escaped', '{"é":"e\u0301","\\u00e9":"𝒳\u2028\u{1F600}","b":"\\/\\u0041"}'],
  ['quotes, backslashes and dollars', `{"a":"\\"\\\\ ' $1 $$ \\n \\\\u0000 ? :a %s"}`],
  ['an array', '[[],{},null,true]'],
  ['262144 bytes', `{"a":"${'ä'.repeat(131_068)}"}`],
] as const

// case C43
for (const [what, text] of TEXTS) {
  test(`the bytes to send are the bytes enqueued: ${what}`, async () => {
    const sha256 = createHash('sha256').update(text).digest('hex')
    for (const [way, enqueue] of Object.entries(WAYS)) {
      const key = `${way}:${sha256}`
      await enqueue({ key, endpoint: 'clinic', type: 't', payload: text })
      const [claim] = await lease(db, endpoint)
      assert.deepEqual([claim?.key, Buffer.from(claim?.payload ?? '')], [key, Buffer.from(text)])
      const [digest] = await db.query(
        `select encode(payload_sha256, 'hex') as sha256, payload_bytes as bytes from outbox.delivery where key = $1`,
        key,
      )
      assert.deepEqual(digest, { sha256, bytes: Buffer.byteLength(text) })
    }
  })
}

// case C45
test('an object is stored as an object, not as a string of JSON, whichever client stores it', async () => {
  const payload = { name: "O'Hara", tags: ['a', null], nested: { n: 1 }, at: new Date(0), left: undefined }
  for (const [way, enqueue] of Object.entries(WAYS)) {
    await enqueue({ key: `object-${way}`, endpoint: 'clinic', type: 't', payload })
    const [stored] = await db.query(
      `select json_typeof(payload) as type, payload ->> 'name' as name, payload #>> '{nested,n}' as n, payload::text as text
       from outbox.delivery where key = $1`,
      `object-${way}`,
    )
    assert.deepEqual(stored, { type: 'object', name: "O'Hara", n: '1', text: JSON.stringify(payload) }, way)
    const [claim] = await lease(db, endpoint)
    assert.deepEqual(JSON.parse(claim?.payload ?? ''), JSON.parse(JSON.stringify(payload)))
  }
})

// What enqueue promises about each message, the same for every client.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { OutledgerError, outbox } from '../../src/index.ts'
import type { TestDatabase } from '../support/database.ts'
import { refusalOf, stageOf } from './stage.ts'
import type { Subject } from './subject.ts'

export function messages(db: TestDatabase, subject: Subject): void {
  const { name, begin } = subject
  const { prefix, event, note, noted, stored } = stageOf(db, subject)

  // case C41
  test(`${name}: the same event again is not written, and has the same id`, async () => {
    const id = await begin(async (tx) => {
      const first = await outbox.enqueue(tx, event('again'))
      assert.deepEqual(await outbox.enqueue(tx, event('again')), { inserted: false, id: first.id })
      return first.id
    })
    await begin(async (tx) => {
      await note(tx, 'again')
      assert.deepEqual(await outbox.enqueue(tx, event('again')), { inserted: false, id })
      assert.deepEqual(await outbox.enqueueMany(tx, [event('again'), event('again')]), [
        { inserted: false, id },
        { inserted: false, id },
      ])
    })
    assert.deepEqual([await stored('again'), await noted('again')], [['again'], 1])
  })

  test(`${name}: a key reused for another endpoint, type or payload is named as such, and the transaction goes on`, async () => {
    const others = {
      endpoint: { endpoint: 'ledger' },
      type: { type: 'u' },
      payload: { payload: { ssn: 'other SECRET' } },
    }
    await begin((tx) => outbox.enqueue(tx, event('reused')))
    await begin(async (tx) => {
      for (const [what, more] of Object.entries(others)) {
        const error = await refusalOf(outbox.enqueue(tx, event('reused', more)))
        assert.ok(error instanceof OutledgerError)
        assert.equal(error.code, 'key_conflict')
        assert.match(
          error.message,
          new RegExp(`^key ${prefix}:reused exists with another ${what}; this event was not written`),
        )
        assert.doesNotMatch(error.message, /SECRET/)
      }
      const many = Object.values(others).map((more) => event('reused', more))
      const error = await refusalOf(outbox.enqueueMany(tx, [event('reused-good'), ...many]))
      assert.equal(error.code, 'key_conflict')
      assert.match(
        error.message,
        /^messages\[1\]: key \S+ exists with another endpoint; messages\[2\]: .* another type; messages\[3\]: .* another payload; 3 of 4 events were not written/,
      )
      await outbox.enqueue(tx, event('reused-after'))
    })
    assert.deepEqual(await stored('reused'), ['reused', 'reused-good', 'reused-after'])
  })

  test(`${name}: a key whose delivery was purged says so`, async () => {
    await db.query(
      `insert into outbox.tombstone (key_sha256, delivery_id, ended_at, delete_after, attempts, ending, certainty)
       values (sha256(convert_to($1, 'UTF8')), 0, now(), now() + interval '1 day', 1, 'delivered', 'delivered')`,
      `${prefix}:purged`,
    )
    const purged = { inserted: false, id: null, purged: true }
    await begin(async (tx) => {
      assert.deepEqual(await outbox.enqueue(tx, event('purged')), purged)
      assert.deepEqual(await outbox.enqueueMany(tx, [event('purged')]), [purged])
    })
    assert.deepEqual(await stored('purged'), [])
  })

  // case C47
  test(`${name}: a wrong message is refused in our words by this side and by the database, never with its payload`, async () => {
    for (const [given, code, message] of [
      [{ key: 'a b' }, 'invalid_message', /^key is 3 bytes long; it must be 1 to 255/],
      [
        { endpoint: "no'where" },
        'unknown_endpoint',
        /^endpoint 'no''where' does not exist; create it with "outledger endpoint put"$/,
      ],
      [{ payload: '{"ssn": SECRET' }, 'invalid_message', /^payload of 14 bytes is not valid JSON$/],
      [
        { notBefore: 'soon' },
        'invalid_message',
        /^notBefore must be a timestamp with time zone at most ten years ahead$/,
      ],
    ] as const) {
      const one = await refusalOf(begin((tx) => outbox.enqueue(tx, event('wrong', given))))
      assert.ok(one instanceof OutledgerError, `${one}`)
      assert.equal(one.code, code)
      assert.match(one.message, message)
      const many = await refusalOf(begin((tx) => outbox.enqueueMany(tx, [event('wrong-0'), event('wrong', given)])))
      assert.equal(many.code, code)
      assert.equal(many.message, `messages[1]: ${one.message}`)
      for (const error of [one, many])
        assert.doesNotMatch(JSON.stringify([error, error.message, error.stack, error.cause ?? null]), /SECRET/)
    }
    assert.deepEqual(await stored('wrong'), [])
  })

  // cases C43, C45
  test(`${name}: the bytes are kept as they are, and the payload is an object to Postgres`, async () => {
    const texts = [
      ' {"z":1e2, "a":"\\u0000", "n":9007199254740993, "n":1.10} ',
      '{"ü":"🩺","q":"\\"\\\\\'$1","null":null}',
      JSON.stringify({ ssn: 'SECRET' }),
      '["a","{b}"]',
    ]
    await begin(async (tx) => {
      for (const [i, text] of texts.entries()) await outbox.enqueue(tx, event(`bytes-${i}`, { payload: text }))
      await outbox.enqueueMany(
        tx,
        texts.map((text, i) => event(`bytes-many-${i}`, { payload: text })),
      )
      await outbox.enqueue(tx, event('bytes-object', { payload: { b: [1], a: '\0' } }))
    })
    const rows = await db.query<{ text: string }>(
      `select payload::text as text, json_typeof(payload) as type from outbox.delivery where starts_with(key, $1) order by id`,
      `${prefix}:bytes`,
    )
    const typed = (text: string) => ({ text, type: text.startsWith('[') ? 'array' : 'object' })
    assert.deepEqual(rows, [...texts, ...texts, '{"b":[1],"a":"\\u0000"}'].map(typed))
  })

  test(`${name}: many come back in the order given, as one by one`, async () => {
    await begin((tx) => outbox.enqueue(tx, event('many-2')))
    const results = await begin((tx) =>
      outbox.enqueueMany(
        tx,
        [3, 2, 1].map((n) => event(`many-${n}`)),
      ),
    )
    assert.deepEqual(
      results.map(({ inserted }) => inserted),
      [true, false, true],
    )
    assert.ok(Number(results[0]?.id) < Number(results[2]?.id))
    assert.deepEqual(await begin((tx) => outbox.enqueueMany(tx, [])), [])
  })
}

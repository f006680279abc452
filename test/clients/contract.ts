// What enqueue promises, the same for every client.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { OutledgerError, outbox } from '../../src/index.ts'
import { anyExecutor, type Handle } from '../../src/transaction.ts'
import type { TestDatabase } from '../support/database.ts'
import type { Subject } from './subject.ts'

const PAYLOAD = { ssn: 'SECRET' }

/** Needs the endpoints clinic and ledger, and a table note (n text). */
export function contract(db: TestDatabase, { name, roots, begin, savepoint, stateOf }: Subject): void {
  const prefix = name.replace(/[^A-Za-z.]+/g, '-')
  const event = (key: string, more: Partial<outbox.Message> = {}): outbox.Message => ({
    key: `${prefix}:${key}`,
    endpoint: 'clinic',
    type: 't',
    payload: PAYLOAD,
    ...more,
  })
  const notes = (tx: Handle, note: string) =>
    anyExecutor(tx).run('insert into note values ($1::text)', [`${prefix}:${note}`])
  const undo = new Error('undo')
  const undone =
    <T>(work: (tx: Handle) => Promise<T>) =>
    async (tx: Handle) => {
      await work(tx)
      throw undo
    }
  /** Keys that are in the outbox, with what of it is open. */
  const stored = async (start: string) => {
    const rows = await db.query<{ key: string; open: boolean }>(
      `select d.key, q.delivery_id is not null as open from outbox.delivery d left join outbox.queue q on q.delivery_id = d.id
       where starts_with(d.key, $1) order by d.id`,
      `${prefix}:${start}`,
    )
    assert.ok(rows.every(({ open }) => open))
    return rows.map(({ key }) => key.slice(prefix.length + 1))
  }
  const noted = async (start: string) =>
    (await db.query<{ n: string }>('select n from note where starts_with(n, $1)', `${prefix}:${start}`)).length
  const refusalOf = (work: Promise<unknown>) =>
    work.then(
      () => assert.fail('accepted'),
      (error) => error as OutledgerError,
    )

  // case C40
  test(`${name}: a commit sends, before or after the business write; a rollback leaves nothing`, async () => {
    const first = await begin(async (tx) => {
      const result = await outbox.enqueue(tx, event('commit-1'))
      await notes(tx, 'commit')
      return result
    })
    const second = await begin(async (tx) => {
      await notes(tx, 'commit')
      return outbox.enqueue(tx, event('commit-2'))
    })
    assert.deepEqual(
      [first, second],
      [
        { inserted: true, id: `${first.id}` },
        { inserted: true, id: `${second.id}` },
      ],
    )
    assert.match(`${first.id}`, /^\d+$/)
    await assert.rejects(begin(undone((tx) => outbox.enqueue(tx, event('commit-3')))), undo)
    await assert.rejects(
      begin(
        undone(async (tx) => {
          await notes(tx, 'commit')
          await outbox.enqueueMany(tx, [event('commit-4'), event('commit-5')])
        }),
      ),
      undo,
    )
    assert.deepEqual(await stored('commit'), ['commit-1', 'commit-2'])
    assert.equal(await noted('commit'), 2)
  })

  test(`${name}: what is enqueued in a savepoint goes with it, and the transaction goes on`, async () => {
    await begin(async (tx) => {
      await savepoint(tx, (inner) => outbox.enqueue(inner, event('savepoint-kept')))
      await assert.rejects(
        savepoint(
          tx,
          undone((inner) => outbox.enqueue(inner, event('savepoint-undone'))),
        ),
        undo,
      )
      await assert.rejects(
        savepoint(tx, (inner) => outbox.enqueue(inner, event('savepoint-unknown', { endpoint: 'nowhere' }))),
        { code: 'unknown_endpoint' },
      )
      await outbox.enqueue(tx, event('savepoint-after'))
    })
    assert.deepEqual(await stored('savepoint'), ['savepoint-kept', 'savepoint-after'])
  })

  test(`${name}: a savepoint that is undone first takes nothing from the transaction`, async () => {
    await begin(async (tx) => {
      await assert.rejects(
        savepoint(
          tx,
          undone((inner) => outbox.enqueue(inner, event('first-undone'))),
        ),
        undo,
      )
      await outbox.enqueue(tx, event('first-after'))
    })
    assert.deepEqual(await stored('first'), ['first-after'])
  })

  // case C41
  test(`${name}: the same event again is not written, and has the same id`, async () => {
    const id = await begin(async (tx) => {
      const first = await outbox.enqueue(tx, event('again'))
      assert.deepEqual(await outbox.enqueue(tx, event('again')), { inserted: false, id: first.id })
      return first.id
    })
    await begin(async (tx) => {
      await notes(tx, 'again')
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
        /^not_before must be a timestamp with time zone at most ten years ahead$/,
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
      JSON.stringify(PAYLOAD),
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

  // case C42
  for (const [what, root] of Object.entries(roots))
    test(`${name}: ${what} is refused by enqueue, and taken by enqueueStandalone`, async () => {
      const key = `twin-${what.replaceAll(' ', '-')}`
      for (const write of [
        () => outbox.enqueue(root, event(`${key}-refused`)),
        () => outbox.enqueueMany(root, [event(`${key}-refused`)]),
      ])
        await assert.rejects(write(), {
          name: 'OutledgerError',
          code: 'not_a_transaction',
          message:
            /^enqueue needs the transaction of the business write, .+; call enqueueStandalone if there is no business write$/,
        })
      assert.deepEqual(await stored(key), [])
      assert.equal((await outbox.enqueueStandalone(root, event(key))).inserted, true)
      assert.deepEqual(await stored(key), [key])
    })

  // case C40
  test(`${name}: a handle that has outlived its transaction is refused`, async () => {
    const committed = await begin(async (tx) => {
      await notes(tx, 'outlived')
      return { tx }
    })
    let rolledBack: Handle | undefined
    await assert.rejects(
      begin(
        undone(async (tx) => {
          rolledBack = tx
          await outbox.enqueue(tx, event('outlived'))
        }),
      ),
      undo,
    )
    for (const tx of [committed.tx, rolledBack as Handle]) {
      await assert.rejects(outbox.enqueue(tx, event('outlived')), { code: 'not_a_transaction' })
      await assert.rejects(outbox.enqueueMany(tx, [event('outlived')]), { code: 'not_a_transaction' })
    }
    assert.deepEqual(await stored('outlived'), [])
  })

  test(`${name}: in a transaction that has failed, the error says what to do`, async () => {
    const aborted = { code: 'transaction_aborted', message: /roll it back, or back to a savepoint$/ }
    // What a client does with a commit of a failed transaction is its own: this one rolls back.
    await begin(
      undone(async (tx) => {
        await assert.rejects(anyExecutor(tx).run('select 1/0', []))
        await assert.rejects(outbox.enqueue(tx, event('aborted')), aborted)
        await assert.rejects(outbox.enqueueMany(tx, [event('aborted')]), aborted)
      }),
    ).catch(() => {})
    assert.deepEqual(await stored('aborted'), [])
  })

  test(`${name}: an error of the database itself comes as the client tells it, without the payload`, async () => {
    const failed = begin(async (tx) => {
      await anyExecutor(tx).run('select from outbox.endpoint', [])
      await outbox.enqueueStandalone(db.sql, event('serial'))
      await outbox.enqueue(tx, event('serial'))
    }, 'repeatable read')
    const error = await refusalOf(failed)
    assert.equal(stateOf?.(error) ?? error.code, '40001', `${error}`)
    assert.doesNotMatch(JSON.stringify([error, error.message, error.stack, error.cause ?? null]), /SECRET/)
  })

  test(`${name}: without the schema the error says what to run`, async () => {
    const missing = { code: 'schema_missing', message: /run "outledger migrate"$/ }
    await begin(
      undone(async (tx) => {
        await anyExecutor(tx).run('alter schema outbox rename to elsewhere', [])
        await assert.rejects(outbox.enqueue(tx, event('missing')), missing)
      }),
    ).catch((error) => assert.ok(error === undo || /undo|25P02|aborted/.test(String(error)), String(error)))
  })
}

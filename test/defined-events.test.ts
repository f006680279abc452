import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type } from 'arktype'
import * as v from 'valibot'
import { z } from 'zod'
import { defineEvents, OutledgerError, type outbox } from '../src/index.ts'
import { testDatabase } from './support/database.ts'
import { addEndpoint } from './support/ledger.ts'

const db = await testDatabase()
await addEndpoint(db)

/** The same two events by each validator: with a transformation, and with a default. */
const EVENTS = {
  zod: defineEvents({
    'payment.captured': z.object({
      cents: z.number(),
      at: z.string().transform((at) => at.length),
      tags: z.record(z.string(), z.number()).optional(),
    }),
    'claim.sent': z.object({ claim: z.object({ lines: z.array(z.object({ code: z.string() })) }) }),
  }),
  valibot: defineEvents({
    'payment.captured': v.object({
      cents: v.number(),
      at: v.pipe(
        v.string(),
        v.transform((at) => at.length),
      ),
      tags: v.optional(v.record(v.string(), v.number())),
    }),
    'claim.sent': v.object({ claim: v.object({ lines: v.array(v.object({ code: v.string() })) }) }),
  }),
  arktype: defineEvents({
    'payment.captured': type({
      cents: 'number',
      at: type('string').pipe((at) => at.length),
      'tags?': 'Record<string, number>',
    }),
    'claim.sent': type({ claim: { lines: type({ code: 'string' }).array() } }),
  }),
  'zod, asynchronously': defineEvents({
    'payment.captured': z.object({
      cents: z.number().refine(async (cents) => cents > 0),
      at: z.string().transform((at) => at.length),
      tags: z.record(z.string(), z.number()).optional(),
    }),
    'claim.sent': z.object({ claim: z.object({ lines: z.array(z.object({ code: z.string() })) }) }),
  }),
}

const CAPTURED = { type: 'payment.captured', endpoint: 'clinic', payload: { cents: 1842, at: '2026-12-01' } } as const
const refusalOf = (work: Promise<unknown>) =>
  work.then(
    () => assert.fail('accepted'),
    (error) => error as OutledgerError,
  )

for (const [name, events] of Object.entries(EVENTS)) {
  const key = (n: number | string) => `${name.replace(', ', '-')}:${n}`

  test(`${name}: what is sent is what was given, and the receiver's check with the same schema holds`, async () => {
    await db.sql.begin(async (tx) => {
      assert.equal((await events.enqueue(tx, { ...CAPTURED, key: key(1), orderingKey: 'o' })).inserted, true)
      const lines = [{ code: 'A' }]
      await events.enqueueMany(tx, [
        { ...CAPTURED, key: key(2) },
        { type: 'claim.sent', key: key(3), endpoint: 'clinic', payload: { claim: { lines } } },
      ])
    })
    await events.enqueueStandalone(db.sql, { ...CAPTURED, key: key(4) })
    const rows = await db.query<{ type: string; payload: string }>(
      'select type, payload::text as payload from outbox.delivery where starts_with(key, $1) order by id',
      key(''),
    )
    const captured = { type: 'payment.captured', payload: '{"cents":1842,"at":"2026-12-01"}' }
    assert.deepEqual(rows, [
      captured,
      captured,
      { type: 'claim.sent', payload: '{"claim":{"lines":[{"code":"A"}]}}' },
      captured,
    ])
    for (const row of rows) assert.equal((await events.check(row.type, JSON.parse(row.payload))).ok, true)
    assert.deepEqual(await events.check('payment.captured', JSON.parse(captured.payload)), {
      ok: true,
      type: 'payment.captured',
      payload: { cents: 1842, at: 10 },
    })
  })

  // case C47
  test(`${name}: a payload that does not fit is refused by the type and the place, never with a value`, async () => {
    const wrong = { cents: 'SECRET', at: { SECRET: 1 }, tags: { '123-45-SECRET': 'SECRET' } } as never
    const nested = { claim: { lines: [{ code: 'A' }, { code: ['SECRET'] }] } } as never
    await db.sql.begin(async (tx) => {
      const one = await refusalOf(events.enqueue(tx, { ...CAPTURED, key: key('bad'), payload: wrong }))
      const many = await refusalOf(
        events.enqueueMany(tx, [
          { ...CAPTURED, key: key('bad-1') },
          { type: 'claim.sent', key: key('bad-2'), endpoint: 'clinic', payload: nested },
        ]),
      )
      assert.deepEqual([one.code, many.code], ['invalid_message', 'invalid_message'])
      assert.match(one.message, /^payload of payment\.captured does not fit its schema at .*\bcents\b/)
      assert.match(one.message, /tags\.…/)
      assert.equal(many.message, 'messages[1]: payload of claim.sent does not fit its schema at claim.lines.1.code')
      for (const error of [one, many]) {
        assert.ok(error instanceof OutledgerError)
        assert.doesNotMatch(JSON.stringify([error, error.message, error.stack, error.cause ?? null]), /SECRET|123/)
      }
    })
    assert.deepEqual(await db.query('select from outbox.delivery where starts_with(key, $1)', key('bad')), [])
    const problem = 'payload of claim.sent does not fit its schema at claim.lines.1.code'
    assert.deepEqual(await events.check('claim.sent', nested), { ok: false, problem })
  })
}

test('a type that is not defined is refused, and on the receiver’s side a value: old rows outlive types', async () => {
  const events = EVENTS.zod
  for (const [given, message] of [
    ['payment.capture', 'type "payment.capture" is not defined; did you mean "payment.captured"?'],
    ['constructor', 'type "constructor" is not defined'],
    ['__proto__', 'type "__proto__" is not defined'],
  ] as const) {
    const error = await refusalOf(events.enqueueStandalone(db.sql, { ...CAPTURED, key: 'k', type: given } as never))
    assert.deepEqual([error.code, error.message], ['invalid_message', message])
    assert.deepEqual(await events.check(given, {}), { ok: false, problem: message })
  }
  for (const given of [null, 'capture', { ...CAPTURED, key: 'k', type: 7 }] as never[])
    await assert.rejects(events.enqueueStandalone(db.sql, given), { code: 'invalid_message' })
  await assert.rejects(events.enqueueMany(db.sql, null as never), { code: 'not_a_transaction' })
})

test('what is checked is the payload as it will arrive', async () => {
  const events = defineEvents({
    'visit.booked': z.object({ at: z.date() }),
    'visit.moved': z.object({ at: z.coerce.date() }),
  })
  const message = { key: 'visit', endpoint: 'clinic', payload: { at: new Date(0) } }
  const error = await refusalOf(events.enqueueStandalone(db.sql, { ...message, type: 'visit.booked' }))
  assert.equal(error.message, 'payload of visit.booked does not fit its schema at at')
  assert.equal((await events.enqueueStandalone(db.sql, { ...message, type: 'visit.moved' })).inserted, true)
  const received = await events.check('visit.moved', { at: '1970-01-01T00:00:00.000Z' })
  assert.deepEqual(received, { ok: true, type: 'visit.moved', payload: { at: new Date(0) } })
})

test('a payload that changes while its schema looks at it is sent as it was checked', async () => {
  const payload = { cents: 1 }
  const events = defineEvents({
    t: z.object({ cents: z.number() }).refine(async () => {
      payload.cents = 2
      return true
    }),
  })
  await events.enqueueStandalone(db.sql, { key: 'changing', endpoint: 'clinic', type: 't', payload })
  const [row] = await db.query(`select payload::text as payload from outbox.delivery where key = 'changing'`)
  assert.deepEqual(row, { payload: '{"cents":1}' })
})

test('on the receiver’s side a schema that throws is a value too, and so is a type that did not arrive', async () => {
  const throwing = (value: unknown): never => {
    throw new RangeError(`patient ${value}`)
  }
  const events = defineEvents({ t: z.object({ a: z.string().transform(throwing) }) })
  assert.deepEqual(await events.check('t', { a: '1842' }), { ok: false, problem: 'the schema of t threw RangeError' })
  assert.deepEqual(await events.check(undefined as never, {}), { ok: false, problem: 'type is no text' })
  const around = new Error('a')
  around.cause = new Error('b', { cause: around })
  const hostile = Object.defineProperty({}, 'code', { get: () => throwing(0) })
  for (const error of [around, hostile, null]) {
    const validate = () => {
      throw error
    }
    const { check } = defineEvents({ t: { '~standard': { version: 1, validate } } })
    assert.equal((await check('t', {})).ok, false)
  }
  const message = { key: 'k', endpoint: 'clinic', type: 't', payload: { a: '1842' } } as const
  await assert.rejects(events.enqueueStandalone(db.sql, message), RangeError)
})

test('what has no schema or no proper name is refused when it is defined', () => {
  const refused = (schemas: object, message: RegExp) =>
    assert.throws(() => defineEvents(schemas as never), { code: 'invalid_option', message })
  refused({ 'a b': z.object({}) }, /^event type "a b" is 3 bytes long; it must be 1 to 200 printable ASCII/)
  refused({ a: { parse() {} } }, /^event type "a" has no Standard Schema/)
  refused({ a: null }, /^event type "a" has no Standard Schema/)
})

/** Never called: `tsc` is the test. */
export async function typed(tx: Parameters<typeof outbox.enqueue>[0]): Promise<void> {
  const more = { key: 'k', endpoint: 'clinic' }
  for (const events of [EVENTS.zod, EVENTS.valibot, EVENTS.arktype]) {
    // @ts-expect-error no such type
    await events.enqueue(tx, { ...more, type: 'payment.capture', payload: { cents: 1, at: '' } })
    // @ts-expect-error the payload of another type
    await events.enqueue(tx, { ...more, type: 'claim.sent', payload: { cents: 1, at: '' } })
    // @ts-expect-error the output of the schema, not its input
    await events.enqueueMany(tx, [{ ...more, type: 'payment.captured', payload: { cents: 1, at: 10 } }])
    // @ts-expect-error a field is missing
    await events.enqueueStandalone(tx, { ...more, type: 'payment.captured', payload: { at: '' } })
    // @ts-expect-error a reference cannot be checked
    await events.enqueue(tx, { ...more, type: 'payment.captured', payloadRef: 's3://x' })
    const one = await events.check('payment.captured', {})
    if (one.ok) one.payload.at satisfies number
    // @ts-expect-error the output, not the input
    if (one.ok) one.payload.at satisfies string
    const any = await events.check('claim.sent' as string, {})
    if (any.ok && any.type === 'claim.sent') any.payload.claim.lines satisfies { code: string }[]
    // @ts-expect-error which of the types is not known yet
    if (any.ok) any.payload.claim
    if (!any.ok) any.problem satisfies string
  }
}

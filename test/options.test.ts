import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { OptionSpec } from '../src/core/option.ts'
import { ENDPOINT_OPTIONS } from '../src/endpoint-options.ts'
import { createPoller, OutledgerError, type PollerGiven } from '../src/index.ts'
import { completeOptions, POLLER_OPTIONS } from '../src/options.ts'
import { testDatabase } from './support/database.ts'

const db = await testDatabase()

const TABLE = {
  slots: { type: 'integer', default: 64, min: 1, max: 1_000, doc: '' },
  name: { type: 'string', default: null, doc: '' },
  url: { type: 'string', doc: '' },
  quiet: { type: 'boolean', default: false, doc: '' },
} as const

const complete: readonly (readonly [why: string, given: object, wanted: object | string])[] = [
  ['what is not given has its default', { url: 'x' }, { slots: 64, name: null, url: 'x', quiet: false }],
  ['what is given stands', { url: 'x', slots: 1, quiet: true }, { slots: 1, name: null, url: 'x', quiet: true }],
  ['undefined is not given', { url: 'x', slots: undefined }, { slots: 64, name: null, url: 'x', quiet: false }],
  ['false and 0 are given', { url: 'x', quiet: false, slots: 0 }, 'option slots is 0; it must be from 1 to 1000'],
  ['null where that is the default', { url: 'x', name: null }, { slots: 64, name: null, url: 'x', quiet: false }],
  ['without a default it must be given', {}, 'option url is required'],
  ['null is no value for it', { url: null }, 'option url is required'],
  ['another type', { url: 5 }, 'option url is 5; it must be a string'],
  ['an unknown name', { url: 'x', slot: 1 }, 'unknown option "slot"; did you mean "slots"?'],
  ['a name like nothing', { url: 'x', parallelism: 1 }, 'unknown option "parallelism"'],
  ['an unknown name without a value', { url: 'x', Slots: undefined }, 'unknown option "Slots"; did you mean "slots"?'],
  ['a name that every object has', { url: 'x', toString: 1 }, 'unknown option "toString"'],
]

for (const [why, given, wanted] of complete) {
  test(`options: ${why}`, () => {
    if (typeof wanted === 'object') assert.deepEqual(completeOptions(TABLE, given), wanted)
    else {
      const refused = { name: 'OutledgerError', code: 'invalid_option', message: wanted }
      assert.throws(() => completeOptions(TABLE, given), refused)
      assert.throws(() => completeOptions(TABLE, given, 'invalid_endpoint'), { ...refused, code: 'invalid_endpoint' })
    }
  })
}

test('the defaults are those of the design', () => {
  const { leaseMs, timeoutMs, settleBudgetMs, graceMs, slots, pollIntervalMs, heartbeatMs, ...poller } =
    completeOptions(POLLER_OPTIONS, { databaseUrl: 'postgres://h/d' })
  assert.deepEqual(
    { leaseMs, timeoutMs, settleBudgetMs, graceMs, slots, pollIntervalMs, heartbeatMs },
    {
      ...{ leaseMs: 30_000, timeoutMs: 20_000, settleBudgetMs: 5_000, graceMs: 25_000 },
      ...{ slots: 64, pollIntervalMs: 1_000, heartbeatMs: 5_000 },
    },
  )
  const { sweepIntervalMs, purgeIntervalMs, tombstoneDays } = poller
  assert.deepEqual([sweepIntervalMs, purgeIntervalMs, tombstoneDays], [5_000, 60_000, 365])
  const endpoint = completeOptions(ENDPOINT_OPTIONS, { name: 'n', url: 'u', secret: 's' })
  assert.deepEqual(
    [endpoint.retryDelayMs, endpoint.backoffFactor, endpoint.horizonMs, endpoint.keyWindowMs],
    [300_000, 1, 72 * 3_600_000, 30 * 86_400_000],
  )
  assert.deepEqual([endpoint.retentionDays, endpoint.partitions, endpoint.concurrency], [30, 8, 64])
  assert.deepEqual([endpoint.allowInsecure, endpoint.allowPrivate], [false, false])
})

for (const [title, table] of [
  ['a poller', POLLER_OPTIONS],
  ['an endpoint', ENDPOINT_OPTIONS],
] as const) {
  test(`each option of ${title} explains itself, has a range if it is a number, and a default that is in it`, () => {
    for (const [name, spec] of Object.entries<OptionSpec>(table)) {
      assert.ok(spec.doc.length > 10, name)
      if (spec.type === 'integer' || spec.type === 'number')
        assert.ok(spec.min !== undefined && spec.max !== undefined && spec.min < spec.max, `${name} has no range`)
      if (spec.default === undefined || spec.default === null) continue
      completeOptions({ [name]: spec }, { [name]: spec.default })
    }
  })
}

const given = (more: Partial<PollerGiven>): PollerGiven => ({ databaseUrl: db.url, ...more })

// case C04
const leases: readonly (readonly [why: string, more: Partial<PollerGiven>, problem: RegExp | null])[] = [
  ['the defaults', {}, null],
  ['a lease that just holds request and settle', { leaseMs: 25_100 }, null],
  [
    'a millisecond less',
    { leaseMs: 25_099 },
    /^leaseMs 25099 is too short for timeoutMs 20000 \+ settleBudgetMs 5000: .* raise leaseMs to 25100 or more$/,
  ],
  ['a longer timeout', { timeoutMs: 25_001 }, /^leaseMs 30000 is too short for timeoutMs 25001 \+ settleBudgetMs 5000/],
  ['a longer budget', { settleBudgetMs: 10_001 }, /^leaseMs 30000 is too short for .* settleBudgetMs 10001/],
  ['a misspelt option', { leaseMS: 60_000 } as object, /^unknown option "leaseMS"; did you mean "leaseMs"\?$/],
  ['an option of an endpoint', { retryDelayMs: 5 } as object, /^unknown option "retryDelayMs"/],
  ['an option out of its range', { slots: 0 }, /^option slots is 0; it must be from 1 to 1000$/],
  [
    'a module as a loader',
    { loadPayload: './store.mjs' } as object,
    /^option loadPayload is a string; it must be a function$/,
  ],
  ['no resolver at all', { resolveSecret: null } as object, /^option resolveSecret is null; it must be a function$/],
  ['text as a number', { slots: '64' } as object, /^option slots is "64"; it must be a whole number from 1 to 1000$/],
]

for (const [why, more, problem] of leases) {
  test(`createPoller with ${why} ${problem === null ? 'is content' : 'refuses, and says why'}`, async () => {
    if (problem === null) await createPoller(given(more)).stop()
    else
      assert.throws(() => createPoller(given(more)), {
        name: 'OutledgerError',
        code: 'invalid_option',
        message: problem,
      })
  })
}

for (const databaseUrl of ['x', 'http://pw@host/db', 'postgres://%:pw@host/db'])
  test(`createPoller refuses a database URL that is none, and does not repeat it: ${databaseUrl}`, () => {
    const message = 'option databaseUrl must look like postgres://user@host:5432/name'
    assert.throws(() => createPoller({ databaseUrl }), { code: 'invalid_option', message })
  })

test('createPoller without a database is refused before it connects anywhere', () => {
  assert.throws(
    () => createPoller({} as PollerGiven),
    (error) => error instanceof OutledgerError && error.message === 'option databaseUrl is required',
  )
})

// The comparison itself: each way in which the ledger may not differ from the wire is found when it is planted.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import { differences, type Lists, type Row } from '../scripts/ledger-equals-wire/compare.ts'
import type { Seen } from '../scripts/ledger-equals-wire/connection.ts'

const BODY = Buffer.from('{"cents":1842}')

const seen = (number: number, more: Partial<Seen> & { body?: Buffer } = {}): Seen => {
  const { body = BODY, ...rest } = more
  const hash = createHash('sha256').update(body)
  return { endpoint: 'e', key: 'k', number, bytes: body.length, hash, complete: true, answered: 200, ...rest }
}

const row = (number: number, more: Partial<Row> = {}): Row => ({
  ...{ endpoint: 'e', key: 'k', number, requestSent: true, outcome: 'unknown', reason: 'http_503', phase: 'done' },
  ...{ httpStatus: null, startedAt: 1_000 * number, finishedAt: 1_000 * number + 10 },
  ...more,
})

const RESET: Partial<Row> = { reason: 'request_ECONNRESET', phase: 'request' }
const LOST: Partial<Row> = { requestSent: null, reason: 'worker_lost', phase: null }

const lists = (more: Partial<Lists>): Lists => ({
  ...{ seen: [], unread: [], strays: [], rows: [], slackMs: 100 },
  receipts: [{ key: 'k', attempts: more.rows?.length ?? 0, certainty: 'unknown' }],
  bodyOf: (key) => (key === 'k' ? BODY : null),
  ...more,
})

const table: readonly (readonly [why: string, given: Partial<Lists>, wanted: RegExp | null])[] = [
  ['a request and its row', { seen: [seen(1)], rows: [row(1)] }, null],
  ['no row for a request', { seen: [seen(1)] }, /^k #1: on the wire and not in the ledger$/],
  ['a request twice', { seen: [seen(1), seen(1)], rows: [row(1)] }, /^k #1: on the wire 2 times$/],
  ['lost with its poller, unseen', { rows: [row(1, LOST)] }, null],
  ['lost with its poller, seen', { seen: [seen(1)], rows: [row(1, LOST)] }, null],
  ['lost with its poller, seen twice', { seen: [seen(1), seen(1)], rows: [row(1, LOST)] }, /on the wire 2 times/],
  ['not known whether it was sent', { seen: [seen(1)], rows: [row(1, { requestSent: null })] }, /request_sent is null/],
  ['not sent, unseen', { rows: [row(1, { requestSent: false })] }, null],
  [
    'not sent, seen',
    { seen: [seen(1)], rows: [row(1, { requestSent: false })] },
    /says it was not sent .*, and it was/,
  ],
  ['sent, unseen', { rows: [row(1, RESET)] }, /says it was sent .* not seen/],
  ['sent, dropped unread', { rows: [row(1, RESET)], unread: [{ endpoint: 'e', at: 1_005 }] }, null],
  ['dropped elsewhere', { rows: [row(1, RESET)], unread: [{ endpoint: 'other', at: 1_005 }] }, /has not seen it/],
  ['dropped long before', { rows: [row(1, RESET)], unread: [{ endpoint: 'e', at: 800 }] }, /has not seen it/],
  ['dropped afterwards', { rows: [row(1, RESET)], unread: [{ endpoint: 'e', at: 1_020 }] }, /has not seen it/],
  [
    'dropped, and a timeout',
    { rows: [row(1, { reason: 'request_timeout' })], unread: [{ endpoint: 'e', at: 1_005 }] },
    /has not seen/,
  ],
  [
    'two rows, one dropped',
    {
      rows: [row(1, RESET), row(2, { ...RESET, startedAt: 1_000, finishedAt: 1_010 })],
      unread: [{ endpoint: 'e', at: 1_005 }],
    },
    /has not seen/,
  ],
  [
    'other bytes',
    { seen: [seen(1, { body: Buffer.from('{"cents":1843}') })], rows: [row(1)] },
    /14 bytes arrived that are not/,
  ],
  ['a part of the bytes', { seen: [seen(1, { body: BODY.subarray(0, 5), complete: false })], rows: [row(1)] }, null],
  ['a part as if it were all', { seen: [seen(1, { body: BODY.subarray(0, 5) })], rows: [row(1)] }, /5 bytes arrived/],
  ['a key that nobody enqueued', { seen: [seen(1, { key: 'x' })] }, /x #1: 14 bytes arrived/],
  [
    'another status',
    { seen: [seen(1, { answered: 503 })], rows: [row(1, { httpStatus: 200 })] },
    /answered with 503, .* says 200/,
  ],
  [
    'a status without an answer',
    { seen: [seen(1, { answered: null })], rows: [row(1, { httpStatus: 200 })] },
    /with nothing/,
  ],
  ['an answer that got lost', { seen: [seen(1)], rows: [row(1, RESET)] }, null],
  ['a gap', { seen: [seen(1), seen(3)], rows: [row(1), row(3)] }, /2 attempts were made, and the ledger has 1,3/],
  [
    'delivered, and never accepted',
    {
      seen: [seen(1, { answered: 503 })],
      rows: [row(1)],
      receipts: [{ key: 'k', attempts: 1, certainty: 'delivered' }],
    },
    /never said so/,
  ],
  ['bytes that are no request', { strays: ['e: "GET"'] }, /^no request: e: "GET"$/],
]

for (const [why, given, wanted] of table)
  test(`ledger and wire: ${why}${wanted === null ? ' is right' : ' is a difference'}`, () => {
    const found = differences(lists(given))
    if (wanted === null) assert.deepEqual(found, [])
    else
      assert.ok(
        found.some((line) => wanted.test(line)),
        `${found}`,
      )
  })

// The rules that look at more than one attempt: what was lost, cut, too late or perhaps applied before, and what follows.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { enqueue, putClinic, testPoller } from './support/clinic.ts'
import { testDatabase } from './support/database.ts'
import { startFaultPeer } from './support/fault-peer.ts'
import { answer, fin, ok, silence } from './support/faults.ts'
import { testSecretValue } from './support/secret.ts'
import { age, losses, lost, meet, round, type Step, set, stopped, storeDown, tried } from './support/steps.ts'

const db = await testDatabase()
const peer = await startFaultPeer()
const deaf = await startFaultPeer({ tls: 'valid' })
deaf.accept('silence')
const secrets = new Map<string, string>()
const resolveSecret = (reference: string) => {
  const secret = secrets.get(reference)
  if (secret === undefined) throw new Error('the store is down')
  return secret
}
const poller = () => testPoller(db, { resolveSecret, pollIntervalMs: 20 })

/** Outcome, verdict and reason of each attempt; state, reason and certainty of the delivery; requests that came. */
type Row = readonly [why: string, steps: readonly Step[], attempts: string[], ends: string, seen: number, more?: More]
type More = NonNullable<Parameters<typeof putClinic>[2]> & { readonly orderingKey?: string; readonly deaf?: boolean }

const LOST = 'unknown retry worker_lost'
const LATE = [tried(answer(503)), age('73 hours')]
const NEVER = [tried(answer(408)), age('73 hours')]
const FAILED = 'unknown retry http_503'
const CLOSED = 'unknown retry request_closed'
const TIMEOUT = 'unknown retry request_timeout'
const OK = 'delivered delivered'
const quick = { timeoutMs: 1_000 }
const review = { onUnknown: 'review' } as const
const replay = answer(200, { 'idempotent-replayed': 'true' })

const rows: readonly Row[] = [
  ['worker lost, then 200', [lost, round], [LOST, OK], 'delivered - delivered', 1],
  ['worker lost, then 410', [lost, meet(answer(410)), round], [LOST, 'rejected dead gone'], 'dead gone unknown', 1],
  ['lost seven times, five of them alone', [losses(7), round], ['unknown dead poison'], 'dead poison unknown', 0],
  ['lost six times', [losses(6), round], [OK], 'delivered - delivered', 1],

  ['our stop, when it was sent', [stopped], ['unknown retry shutdown'], 'waiting - unknown', 1],
  [
    'our stop, and again at once',
    [stopped, meet(ok), round],
    ['unknown retry shutdown', OK],
    'delivered - delivered',
    2,
  ],
  ['our stop, before it was sent', [stopped], [], 'waiting - not_attempted', 0, { deaf: true }],
  ['the secret store is down', [storeDown, round, round], [], 'waiting - not_attempted', 0],

  ['fails after the horizon', [...LATE, round], [FAILED, 'unknown dead http_503'], 'dead exhausted unknown', 2],
  [
    'fails after the horizon, for certain',
    [...NEVER, round],
    ['not_applied retry http_408', 'not_applied dead http_408'],
    'dead exhausted not_applied',
    2,
  ],
  ['succeeds after the horizon', [...LATE, meet(ok), round], [FAILED, OK], 'delivered - delivered', 2],
  ['waited past the horizon', [age('100 days'), meet(answer(503)), round], [FAILED], 'waiting - unknown', 1],
  [
    'fails as often as allowed',
    [tried(answer(503)), round],
    [FAILED, 'unknown dead http_503'],
    'dead exhausted unknown',
    2,
    { maxAttempts: 2 },
  ],

  [
    'perhaps applied before the key window',
    [tried(fin), age('31 days'), round],
    [CLOSED, 'unknown dead key_window_passed'],
    'dead key_window_passed unknown',
    1,
  ],
  [
    'lost before the key window',
    [lost, age('31 days'), round],
    [LOST, 'unknown dead key_window_passed'],
    'dead key_window_passed unknown',
    0,
  ],
  [
    'never applied, before the key window',
    [tried(answer(408)), age('31 days'), meet(ok), round],
    ['not_applied retry http_408', OK],
    'delivered - delivered',
    2,
  ],

  // case C57: the receiver takes longer than our deadline, and then says that it is at work on it.
  [
    'a timeout, a 409, and the stored answer',
    [tried(silence), tried(answer(409)), meet(replay), round],
    [TIMEOUT, 'unknown retry duplicate_in_progress', 'delivered delivered replayed'],
    'delivered replayed delivered',
    3,
    quick,
  ],
  [
    'a timeout, and a 409 that means taken',
    [tried(silence), meet(answer(409)), round],
    [TIMEOUT, 'delivered delivered duplicate'],
    'delivered duplicate delivered',
    2,
    { ...quick, on409: 'delivered' },
  ],
  [
    'a timeout, and a 409 that means never',
    [tried(silence), meet(answer(409)), round],
    [TIMEOUT, 'rejected dead http_409'],
    'dead http_409 unknown',
    2,
    { ...quick, on409: 'dead' },
  ],

  ...(
    [
      [answer(503), 'http_503'],
      [fin, 'request_closed'],
      [answer(409), 'duplicate_in_progress'],
      [answer(302), 'redirect_not_followed'],
    ] as const
  ).map(
    ([fault, reason]): Row => [
      `review: ${reason}`,
      [meet(fault), round, round],
      [`unknown dead ${reason}`],
      'dead unknown_outcome unknown',
      1,
      review,
    ],
  ),
  [
    'review: of an ordering key',
    [meet(fin), round],
    ['unknown block request_closed'],
    'blocked unknown_outcome unknown',
    1,
    { ...review, orderingKey: 'k' },
  ],
  [
    'review: certainly not applied',
    [tried(answer(408)), meet(ok), round],
    ['not_applied retry http_408', OK],
    'delivered - delivered',
    2,
    review,
  ],
  [
    'review: worker lost',
    [lost, round],
    [LOST, 'unknown dead unknown_outcome'],
    'dead unknown_outcome unknown',
    0,
    review,
  ],
  [
    'review: our stop, when it was sent',
    [stopped, round],
    ['unknown dead shutdown'],
    'dead unknown_outcome unknown',
    1,
    review,
  ],
  [
    'review, asked for after the attempt',
    [tried(fin), set('on_unknown', `'review'`), round],
    [CLOSED, 'unknown dead unknown_outcome'],
    'dead unknown_outcome unknown',
    1,
  ],

  ...['https://me:pw@clinic.example/', 'https://clinic.example:99999/'].map(
    (url): Row => [
      `a URL that put would have refused, ${url}`,
      [set('url', `'${url}'`), round],
      ['not_applied dead bad_config'],
      'dead bad_config not_applied',
      0,
    ],
  ),
]

for (const [i, [why, steps, attempts, ends, seen, more = {}]] of rows.entries())
  test(`${why}: ${ends}`, async () => {
    const { orderingKey, deaf: toDeaf = false, ...settings } = more
    const [key, at] = [`row-${i}`, toDeaf ? deaf : peer]
    secrets.set(`vault:${key}`, testSecretValue)
    const own = { partitions: 1, ...settings, name: key, secret: `vault:${key}` }
    await putClinic(db, at.url, own, { resolve: resolveSecret })
    await enqueue(db, [key], { endpoint: key, ...(orderingKey === undefined ? {} : { orderingKey }) })
    for (const step of steps) await step(key, { db, peer: at, poller, secrets })
    const words = (row: object) => Object.values(row).map((word) => word ?? '-')
    const found = await db.query(
      'select outcome, verdict, reason from outbox.attempts where key = $1 order by number',
      key,
    )
    assert.deepEqual(
      found.map((row) => words(row).join(' ').replace(/ -$/, '')),
      attempts,
    )
    const [delivery = {}] = await db.query(
      'select state, terminal_reason, certainty from outbox.deliveries where key = $1',
      key,
    )
    assert.equal(words(delivery).join(' '), ends)
    const numbers = at.of(key).map(({ number }) => number)
    assert.deepEqual([numbers.length, new Set(numbers).size], [seen, seen], 'and no attempt came twice')
    // What is still due here is nobody's business any more.
    await db.query(`update outbox.endpoint set paused_at = now(), paused_reason = 'over' where name = $1`, key)
  })

// Secrets come from a store that may be slow, empty or wrong; only the endpoint that needs them feels it.
import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { Webhook } from 'standardwebhooks'
import type { ReleasedEvent } from '../src/index.ts'
import { resolveSecret } from '../src/secrets.ts'
import type { Claim } from '../src/sql/claim.ts'
import { endpointsById } from '../src/sql/endpoint.ts'
import { Targets } from '../src/targets.ts'
import { enqueue, keysOf, putClinic, testPoller } from './support/clinic.ts'
import { testDatabase } from './support/database.ts'
import { startPeer } from './support/peer.ts'
import { testSecretValue } from './support/secret.ts'
import { until } from './support/until.ts'

/** A database with the endpoints `healthy` and `other`, whose secret `vault:other` the resolver answers. */
async function twoEndpoints(resolveOther: () => Promise<string> | string) {
  const [db, peer] = [await testDatabase(), await startPeer()]
  const known = { resolve: () => testSecretValue }
  await putClinic(db, peer.url, { name: 'healthy', secret: 'vault:healthy' }, known)
  await putClinic(db, peer.url, { name: 'other', secret: 'vault:other' }, known)
  const resolveSecret = (reference: string) => (reference === 'vault:other' ? resolveOther() : testSecretValue)
  return { db, peer, poller: testPoller(db, { resolveSecret }) }
}

const states = `select endpoint, state, attempts, count(*)::int as n from outbox.deliveries group by 1, 2, 3 order by 1`

test('a secret store that never answers holds up its own endpoint alone, and no stop', async () => {
  const { db, peer, poller } = await twoEndpoints(() => new Promise(() => {}))
  await enqueue(db, keysOf('healthy', 6), { endpoint: 'healthy' })
  await enqueue(db, keysOf('other', 6), { endpoint: 'other' })
  const problems = new Set<string | null>()
  poller.on('released', ({ problem }) => problems.add(problem))
  await poller.runOnce()
  assert.deepEqual([...problems], ['the secret store has not answered yet for vault:other'])
  assert.equal(peer.received.length, 6)
  assert.deepEqual(await db.query(states), [
    { endpoint: 'healthy', state: 'delivered', attempts: 1, n: 6 },
    { endpoint: 'other', state: 'waiting', attempts: 0, n: 6 },
  ])
  await poller.stop({ graceMs: 0 })
})

test('an empty secret is one that is still to come: nothing goes dead, all of one claim come back together', async () => {
  let value = ''
  const { db, peer, poller } = await twoEndpoints(() => value)
  await enqueue(db, keysOf('other', 30), { endpoint: 'other' })
  await poller.runOnce()
  assert.deepEqual(await db.query(states), [{ endpoint: 'other', state: 'waiting', attempts: 0, n: 30 }])
  const [late] = await db.query(
    `select count(*)::int as n from outbox.queue where next_attempt_at > clock_timestamp() + interval '1.1 seconds'`,
  )
  assert.equal(late?.n, 0, 'one fault, one second')
  value = testSecretValue
  for (const key of keysOf('other', 30)) await db.age(key, '2 seconds')
  await poller.runOnce()
  assert.equal(peer.received.length, 30)
})

const nothing: readonly (readonly [why: string, answer: () => unknown, problem: RegExp])[] = [
  ['returns undefined', () => undefined, /"vault:other" cannot be resolved: the secret store returned no text/],
  ['returns blanks', () => ' \n', /"vault:other" cannot be resolved: its value is empty/],
  [
    'rejects',
    () => Promise.reject(Object.assign(new Error('hunter2'), { code: 'ESTORE' })),
    /the secret store failed with ESTORE/,
  ],
  ['throws no error', () => assert.fail('hunter2'), /the secret store failed with ERR_ASSERTION/],
]

test('a store that answers nothing, in whatever way, kills nothing; who waits for which reference is told', async () => {
  let answer: () => unknown = () => undefined
  const { db, peer, poller } = await twoEndpoints(() => answer() as string)
  const released: ReleasedEvent[] = []
  poller.on('released', (event) => released.push(event))
  for (const [i, [why, given, problem]] of nothing.entries()) {
    answer = given
    await enqueue(db, [`nothing-${i}`], { endpoint: 'other' })
    await poller.runOnce()
    const { delayMs: _, problem: said, ...rest } = released.at(-1) ?? assert.fail(why)
    assert.deepEqual(rest, { count: 1, reason: 'secret_unavailable', endpoint: 'other', class: 'default' }, why)
    assert.match(said ?? '', problem)
    assert.ok(!said?.includes('hunter2'))
    await db.query(`update outbox.queue set next_attempt_at = now() + interval '1 hour'`)
  }
  assert.equal(peer.received.length, 0)
  assert.deepEqual(await db.query(states), [{ endpoint: 'other', state: 'waiting', attempts: 0, n: nothing.length }])
})

test('a missing authorization holds back as a missing secret does', async () => {
  let token: unknown
  const [db, peer] = [await testDatabase(), await startPeer()]
  const resolve = (reference: string) => (reference === 'vault:token' ? (token as string) : testSecretValue)
  token = 'Bearer a'
  await putClinic(db, peer.url, { authorization: 'vault:token' }, { resolve })
  await enqueue(db, ['token'])
  const poller = testPoller(db, { resolveSecret: resolve })
  token = undefined
  assert.equal((await poller.runOnce()).released, 1)
  token = 'Bearer b'
  await db.age('token', '2 seconds')
  assert.equal((await poller.runOnce()).delivered, 1)
  assert.equal(peer.received[0]?.headers.authorization, 'Bearer b')
})

const NEW = `whsec_${Buffer.alloc(32, 9).toString('base64')}`

test('a file that is rewritten is believed with the next claim after a refusal, without a restart', async () => {
  const [db, peer] = [await testDatabase(), await startPeer()]
  const folder = await mkdtemp(join(tmpdir(), 'outledger-'))
  after(() => rm(folder, { recursive: true }))
  const file = join(folder, 'secret')
  await writeFile(file, testSecretValue)
  await putClinic(db, peer.url, { secret: `file:${file}` })
  // A receiver that knows the new secret alone.
  peer.answer((response, { body, headers }) => {
    try {
      new Webhook(NEW).verify(body, headers)
      response.writeHead(200).end()
    } catch {
      response.writeHead(401).end()
    }
  })
  const poller = testPoller(db)
  await enqueue(db, ['refused'])
  assert.equal((await poller.runOnce()).dead, 1)
  await writeFile(file, `${NEW}\n`)
  await enqueue(db, ['believed'])
  assert.equal((await poller.runOnce()).delivered, 1)
  assert.equal(peer.received.length, 2)
})

test('a changed value is taken over from time to time; what cannot be used does not replace what can', async () => {
  const [db, peer] = [await testDatabase(), await startPeer()]
  process.env.OUTLEDGER_TEST_CHANGED = testSecretValue
  const row = await putClinic(db, peer.url, { secret: 'env:OUTLEDGER_TEST_CHANGED' })
  const targets = new Targets(resolveSecret, { keptMs: 0 })
  const claims = [{ endpoint_id: row.id, endpoint_version: row.version } as Claim]
  /** What signs after the store was asked again, in passing. */
  const secretWith = async (value: string) => {
    process.env.OUTLEDGER_TEST_CHANGED = value
    await targets.load(claims, (ids) => endpointsById(db, ids))
    await new Promise(setImmediate)
    const target = targets.get(row.id)
    return 'secret' in target ? target.secret.toString('base64') : target.why
  }
  const [old, fresh] = [testSecretValue, NEW].map((text) => text.slice('whsec_'.length))
  for (const [value, wanted] of [
    [testSecretValue, old],
    [NEW, fresh],
    ['', fresh],
    ['whsec_half', fresh],
    [testSecretValue, old],
  ])
    assert.equal(await secretWith(value as string), wanted)
  delete process.env.OUTLEDGER_TEST_CHANGED
  assert.equal(await secretWith(''), old)
})

test('a store that hangs for good is asked ever more rarely, and believed as soon as it answers', async () => {
  const [db, peer] = [await testDatabase(), await startPeer()]
  const row = await putClinic(db, peer.url, { secret: 'vault:hung' }, { resolve: () => testSecretValue })
  const calls: number[] = []
  let answer: Promise<string> | string = new Promise<string>(() => {})
  const resolve = () => {
    calls.push(performance.now())
    return answer
  }
  const targets = new Targets(resolve, { givenUpMs: 20 })
  const claims = [{ endpoint_id: row.id, endpoint_version: row.version } as Claim]
  const ask = async () => {
    await targets.load(claims, async () => endpointsById(db, [row.id]))
    return 'secret' in targets.get(row.id)
  }
  await until('it was asked four times', async () => (await ask()) || calls.length === 4)
  const gaps = calls.slice(1).map((at, i) => at - (calls[i] ?? 0))
  for (const [i, atLeast] of [20, 40, 80].entries()) assert.ok((gaps[i] ?? 0) >= atLeast - 2, `${gaps}`)
  answer = testSecretValue
  await until('it is believed', ask)
})

test('a value is taken without the blanks around it, wherever it comes from', async () => {
  const [db, peer] = [await testDatabase(), await startPeer()]
  const values: Record<string, string> = { 'vault:s': `${testSecretValue}\n`, 'vault:a': ' Bearer a\n' }
  const resolve = (reference: string) => values[reference] as string
  await putClinic(db, peer.url, { secret: 'vault:s', authorization: 'vault:a' }, { resolve })
  await enqueue(db, ['a'])
  assert.equal((await testPoller(db, { resolveSecret: resolve }).runOnce()).delivered, 1)
  assert.equal(peer.received[0]?.headers.authorization, 'Bearer a')
})

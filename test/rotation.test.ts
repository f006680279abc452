// Rotation of a signing secret, judged by the receiver's own library: the old secret verifies until its time is up.
import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { Webhook } from 'standardwebhooks'
import { headersOf } from '../src/headers.ts'
import { OutledgerError, putEndpoint, rotateSecret, showEndpoint } from '../src/index.ts'
import { resolveSecret } from '../src/secrets.ts'
import { targetOf } from '../src/targets.ts'
import { enqueue, putClinic, testPoller } from './support/clinic.ts'
import { testDatabase } from './support/database.ts'
import { startPeer } from './support/peer.ts'
import { testSecret, testSecretValue } from './support/secret.ts'

const db = await testDatabase()
const peer = await startPeer()
const poller = testPoller(db)
const folder = await mkdtemp(join(tmpdir(), 'outledger-'))
after(() => rm(folder, { recursive: true }))

const secretOf = (n: number) => `whsec_${Buffer.alloc(32, n).toString('base64')}`
const NEW = secretOf(2)
process.env.OUTLEDGER_TEST_NEW = NEW
process.env.OUTLEDGER_TEST_THIRD = secretOf(3)

/** One delivery: how many signatures it carries, and who accepts it. */
async function sent(key: string, endpoint: string) {
  await enqueue(db, [key], { endpoint })
  await poller.runOnce()
  const request = peer.received.find((one) => one.key === key)
  assert.ok(request, `${key} has not been sent`)
  const accepts = (secret: string) => {
    try {
      return new Webhook(secret).verify(request.body, request.headers) !== undefined
    } catch {
      return false
    }
  }
  const signatures = (request.headers['webhook-signature'] ?? '').split(' ')
  return { count: signatures.length, old: accepts(testSecretValue), new: accepts(NEW), first: signatures[0] }
}

/** The time of every previous secret comes nearer. */
const age = (name: string, interval: string) =>
  db.query(
    `update outbox.endpoint set previous_secrets = (
       select json_agg(json_build_object('secret', p ->> 'secret', 'until', ((p ->> 'until')::timestamptz - $2::text::interval)::text))
       from json_array_elements(previous_secrets) p) where name = $1`,
    name,
    interval,
  )

test('the old secret verifies until its time is up, the new one from the start, and then there is one signature', async () => {
  await putClinic(db, peer.url, { name: 'rotated' })
  const before = await sent('before', 'rotated')
  assert.deepEqual({ ...before, first: '' }, { count: 1, old: true, new: false, first: '' })
  const row = await rotateSecret(db.sql, 'rotated', { secret: 'env:OUTLEDGER_TEST_NEW', by: 'ann', why: 'yearly' })
  assert.equal(row.secret, 'env:OUTLEDGER_TEST_NEW')
  assert.deepEqual(
    row.previousSecrets.map(({ secret }) => secret),
    [testSecret()],
  )
  const [left] = await db.query(
    `select abs(extract(epoch from (previous_secrets -> 0 ->> 'until')::timestamptz - clock_timestamp()) - 86400) < 60 as a_day
     from outbox.endpoint where name = 'rotated'`,
  )
  assert.deepEqual(left, { a_day: true })
  const during = await sent('during', 'rotated')
  assert.deepEqual({ ...during, first: '' }, { count: 2, old: true, new: true, first: '' })

  await age('rotated', '25 hours')
  await db.query(`update outbox.endpoint set version = version + 1 where name = 'rotated'`)
  const gone = await sent('gone', 'rotated')
  assert.deepEqual({ ...gone, first: '' }, { count: 1, old: false, new: true, first: '' })
  assert.deepEqual((await showEndpoint(db.sql, 'rotated')).previousSecrets, [])

  const [record] = await db.query(
    `select who, why, detail #>> '{old,secret_ref}' as old, detail #>> '{new,secret_ref}' as new
     from outbox.operation where verb = 'endpoint rotate-secret'`,
  )
  assert.deepEqual(record, { who: 'ann', why: 'yearly', old: testSecret(), new: 'env:OUTLEDGER_TEST_NEW' })
  const written = JSON.stringify([
    await db.query('select * from outbox.endpoint'),
    await db.query('select * from outbox.operation'),
  ])
  for (const value of [testSecretValue, NEW]) assert.ok(!written.includes(value), 'a secret is in the database')
})

test('a secret in a running poller’s memory stops signing by the database’s clock, to the millisecond', async () => {
  await putClinic(db, peer.url, { name: 'memory' })
  const endpoint = await rotateSecret(db.sql, 'memory', { secret: 'env:OUTLEDGER_TEST_NEW' })
  const target = await targetOf(endpoint, resolveSecret)
  const [row] = await db.query<{ ms: number }>(
    `select (extract(epoch from $1::text::timestamptz) * 1000)::float8 as ms`,
    endpoint.previousSecrets[0]?.until ?? '',
  )
  const untilMs = row?.ms ?? 0
  const envelope = { key: 'k', type: 't', number: 1, correlation_id: null, traceparent: null }
  const signaturesAt = (nowMs: number) => {
    const headers = headersOf(envelope, target, Buffer.from('{}'), nowMs)
    return headers[headers.indexOf('webhook-signature') + 1]?.split(' ').length
  }
  assert.deepEqual([untilMs - 1, untilMs].map(signaturesAt), [2, 1])
})

test('rotations add up, the newest first, until one keeps nothing', async () => {
  await putClinic(db, peer.url, { name: 'often' })
  await rotateSecret(db.sql, 'often', { secret: 'env:OUTLEDGER_TEST_NEW', keepHours: 48 })
  const second = await rotateSecret(db.sql, 'often', { secret: 'env:OUTLEDGER_TEST_THIRD' })
  const references = (row: typeof second) => row.previousSecrets.map(({ secret }) => secret)
  assert.deepEqual(references(second), ['env:OUTLEDGER_TEST_NEW', testSecret()])
  assert.deepEqual(await sent('often-1', 'often').then((found) => [found.count, found.old, found.new]), [3, true, true])
  const back = await rotateSecret(db.sql, 'often', { secret: testSecret() })
  assert.deepEqual(references(back), ['env:OUTLEDGER_TEST_THIRD', 'env:OUTLEDGER_TEST_NEW'])
  // What a put changes keeps what rotations left.
  assert.deepEqual(references(await putEndpoint(db.sql, { name: 'often', class: 'x' })), references(back))
  const clean = await rotateSecret(db.sql, 'often', { secret: 'env:OUTLEDGER_TEST_NEW', keepHours: 0 })
  assert.deepEqual([clean.secret, references(clean)], ['env:OUTLEDGER_TEST_NEW', []])
})

test('a previous secret that is missing or malformed here holds deliveries back, unsent, until it is there', async () => {
  const file = join(folder, 'old')
  await writeFile(file, testSecretValue)
  await putClinic(db, peer.url, { name: 'lost', secret: `file:${file}` })
  await rotateSecret(db.sql, 'lost', { secret: 'env:OUTLEDGER_TEST_NEW' })
  await enqueue(db, ['lost-1'], { endpoint: 'lost' })
  const state = `select state, attempts, certainty from outbox.deliveries where key = 'lost-1'`
  for (const wrong of ['', 'no secret at all']) {
    await writeFile(file, wrong)
    const { released, dead } = await poller.runOnce()
    assert.deepEqual([released, dead], [1, 0])
    assert.deepEqual(await db.query(state), [{ state: 'waiting', attempts: 0, certainty: 'not_attempted' }])
    await db.age('lost-1', '3 seconds')
  }
  await writeFile(file, testSecretValue)
  await poller.runOnce()
  assert.equal((await db.query<{ state: string }>(state))[0]?.state, 'delivered')

  // Once its time is up nobody asks for it any more.
  await rm(file)
  await age('lost', '25 hours')
  await db.query(`update outbox.endpoint set version = version + 1 where name = 'lost'`)
  assert.equal((await sent('lost-2', 'lost')).count, 1)
})

test('a new secret that means nothing here, or is the current one, is refused and nothing changes', async () => {
  await putClinic(db, peer.url, { name: 'strict' })
  const before = await showEndpoint(db.sql, 'strict')
  process.env.OUTLEDGER_TEST_SHORT = 'whsec_AAAA'
  for (const [secret, code, message] of [
    ['env:OUTLEDGER_TEST_UNSET', 'secret_unresolvable', /the variable is not set/],
    ['env:OUTLEDGER_TEST_SHORT', 'invalid_endpoint', /is no secret/],
    [testSecret(), 'invalid_endpoint', /is the current one of endpoint strict; store the new secret under another/],
  ] as const)
    await assert.rejects(rotateSecret(db.sql, 'strict', { secret }), (error) => {
      assert.ok(error instanceof OutledgerError)
      assert.equal(error.code, code)
      assert.match(error.message, message)
      return true
    })
  await assert.rejects(
    rotateSecret(db.sql, 'strict', { secret: 'env:OUTLEDGER_TEST_NEW', keepHours: -1 }),
    /keepHours is -1/,
  )
  assert.deepEqual(await showEndpoint(db.sql, 'strict'), before)
})

// The verbs of `outledger endpoint` as people type them: their exit codes and what they print.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { enqueue, putClinic } from './support/clinic.ts'
import { testDatabase } from './support/database.ts'
import { startPeer, status } from './support/peer.ts'
import { caughtCli } from './support/screen.ts'
import { testSecret, testSecretValue } from './support/secret.ts'

const db = await testDatabase()
const peer = await startPeer()
const SECRET_2 = `whsec_${Buffer.alloc(32, 2).toString('base64')}`
process.env.CLINIC_SECRET_2 = SECRET_2
process.env.OUTLEDGER_TEST_TOKEN = 'Bearer t'
testSecret()
const printed: string[] = []

/** One verb: exit code, and what it said on either stream. */
async function cli(...args: string[]): Promise<[code: number | null, said: string]> {
  const { code, stdout, stderr } = await caughtCli(db.url, ['endpoint', ...args])
  printed.push(stdout + stderr)
  return [code, (stdout + stderr).trimEnd()]
}
const endpoint = async (name: string) => (await db.query('select * from outbox.endpoint where name = $1', name))[0]

test('an endpoint is paused, resumed and removed, with a reason where one is needed', async () => {
  await putClinic(db, peer.url, { name: 'a' })
  assert.deepEqual(await cli('pause', 'a', '--why', 'they asked', '--by=ann'), [0, 'endpoint a paused: they asked'])
  assert.deepEqual(await cli('resume', 'a', '--by=ben', '--why=done'), [0, 'endpoint a resumed'])
  await enqueue(db, ['a-1'], { endpoint: 'a' })
  const [[inUse, because], [missing, required], [nobody, unknown]] = await Promise.all([
    cli('remove', 'a'),
    cli('pause', 'a'),
    cli('pause', 'b', '--why=x'),
  ])
  assert.deepEqual([inUse, because], [1, 'outledger: endpoint a has 1 open delivery; let it end, then remove it'])
  assert.deepEqual([missing, required], [2, 'outledger: --why is required'])
  assert.equal(nobody, 1)
  assert.match(unknown, /^outledger: endpoint "b" does not exist; create it with "outledger endpoint put"$/)
  await db.query('delete from outbox.queue')
  const [code, removed] = await cli('remove', 'a', '--json', '--by=cyd')
  const { changed, endpoint: row } = JSON.parse(removed)
  assert.deepEqual([code, changed, typeof row.removedAt], [0, true, 'string'])
  assert.deepEqual(
    await db.query(`select who, verb, why from outbox.operation where subject = 'a' order by id offset 1`),
    [
      { who: 'ann', verb: 'endpoint pause', why: 'they asked' },
      { who: 'ben', verb: 'endpoint resume', why: 'done' },
      { who: 'cyd', verb: 'endpoint remove', why: null },
    ],
  )
})

test('a setting that may be absent is taken back with --no-…, and a new host waits for its review', async () => {
  const settings = { region: 'eu', maxAttempts: 9, timeoutMs: 900, authorization: 'env:OUTLEDGER_TEST_TOKEN' }
  await putClinic(db, 'http://a.example/', { name: 'c', ...settings, headers: '{"x-a":"b"}' })
  const takenBack = ['--no-max-attempts', '--no-timeout-ms', '--no-authorization', '--no-headers']
  const [code, said] = await cli('put', 'c', ...takenBack, '--url=http://b.example/', '--why=moved')
  assert.deepEqual(
    [code, said],
    [
      0,
      'endpoint c → http://b.example/ (version 2)\npaused until "outledger endpoint review": host a.example → b.example',
    ],
  )
  const row = await endpoint('c')
  assert.deepEqual(
    [row?.max_attempts, row?.timeout_ms, row?.authorization_ref, row?.headers, row?.region],
    [null, null, null, null, 'eu'],
  )
  const [[refused, why], [required, value]] = await Promise.all([
    cli('resume', 'c'),
    cli('put', 'c', '--no-retry-delay-ms'),
  ])
  assert.equal(refused, 1)
  assert.match(why, /^outledger: endpoint c has a change that nobody has reviewed .*; review it first/)
  assert.equal(required, 2)
  assert.match(value, /--no-retry-delay-ms/)
  const [stale, other] = await cli('review', 'c', '--why=signed', '--version=1')
  assert.equal(stale, 1)
  assert.match(other, /^outledger: endpoint c is at version 2 and not 1; look at what waits now \(host /)
  assert.deepEqual(await cli('review', 'c', '--why=signed', '--version=2'), [
    0,
    'endpoint c: reviewed, deliveries go out',
  ])
})

test('a rotation says which secrets sign and until when, and show tells the whole of an endpoint', async () => {
  await putClinic(db, peer.url, { name: 'd', processor: 'Clinic Ltd' }, { by: 'ann', why: 'new' })
  const [code, said] = await cli('rotate-secret', 'd', '--secret=env:CLINIC_SECRET_2', '--keep-hours=1', '--by=ben')
  assert.equal(code, 0)
  assert.match(
    said,
    /^endpoint d signs with env:CLINIC_SECRET_2\nand with env:OUTLEDGER_TEST_SECRET until \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}Z$/,
  )
  await enqueue(db, ['d-1'], { endpoint: 'd', delayMs: 60_000 })
  const [[shownCode, shown], [jsonCode, json], [limit, keep]] = await Promise.all([
    cli('show', 'd'),
    cli('show', 'd', '--json'),
    cli('rotate-secret', 'd', `--secret=${testSecret()}`, '--keep-hours=9999'),
  ])
  assert.deepEqual([shownCode, jsonCode, limit], [0, 0, 2])
  assert.match(keep, /--keep-hours is 9999; it must be from 0 to 8760/)
  for (const line of [
    /^endpoint +d \(version 2\)$/m,
    /^state +open$/m,
    /^open deliveries +1 \(1 scheduled\)$/m,
    /^processor +Clinic Ltd$/m,
    /^max-attempts +–$/m,
    /^previous secret +env:OUTLEDGER_TEST_SECRET until \d{4}-/m,
    /^at +who +operation +why +what$/m,
    /^\S+ \S+Z +ben +endpoint rotate-secret +secret_ref env:OUTLEDGER_TEST_SECRET → env:CLINIC_SECRET_2/m,
    /^\S+ \S+Z +ann +endpoint put +new$/m,
  ])
    assert.match(shown, line)
  const row = JSON.parse(json)
  assert.deepEqual(
    [row.open.total, row.operations.length, row.previousSecrets.length, row.processor],
    [1, 2, 1, 'Clinic Ltd'],
  )
})

test('a test tells each phase and the verdict, and its exit code whether it was delivered', async () => {
  await putClinic(db, peer.url, { name: 'e' })
  const [code, said] = await cli('test', 'e')
  assert.equal(code, 0, said)
  assert.match(
    said,
    /^endpoint +e at 127\.0\.0\.1:\d+\nkey +ping-\S+\nconnect +[\d.]+ ms\nrequest +[\d.]+ ms\nresponse +[\d.]+ ms\nanswer +HTTP 200 after \d+ ms\noutcome +delivered\nverdict +delivered$/,
  )
  peer.next(status(403))
  const [failed, json] = await cli('test', 'e', '--json')
  const { status: http, outcome, verdict, reason } = JSON.parse(json)
  assert.deepEqual([failed, http, outcome, verdict, reason], [1, 403, 'rejected', 'dead', 'auth_rejected'])
})

test('show and list say what stops an endpoint as it is now, a circuit that is being tried included', async () => {
  await putClinic(db, peer.url, { name: 'stopped' })
  for (const [until, said] of [
    [`'2999-01-01'`, /tripped until 2999-01-01/],
    [`'2001-01-01'`, /tripped, one delivery at a time probes it/],
  ] as const) {
    await db.query(`update outbox.endpoint set tripped_until = ${until} where name = 'stopped'`)
    for (const args of [['list'], ['show', 'stopped']]) {
      const [code, text] = await cli(...args)
      assert.equal(code, 0)
      assert.match(text, said)
      assert.doesNotMatch(text, /tripped until 2001/)
    }
  }
})

test('a put steers no terminal with what waits for a review', async () => {
  await putClinic(db, peer.url, { name: 'f' })
  const [code, said] = await cli('put', 'f', '--region', 'eu\u202e\u009b31m')
  assert.deepEqual(
    [code, said.split('\n')[1]],
    [0, 'paused until "outledger endpoint review": region none → "eu\ufffd\ufffd31m"'],
  )
})

test('nothing of all this shows a secret', () => {
  assert.ok(printed.length >= 12)
  for (const secret of [testSecretValue, SECRET_2, 'Bearer t\n']) assert.ok(!printed.join('\n').includes(secret))
})

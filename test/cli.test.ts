// The command line against a database: what it does, its exit codes and what it prints. Processes only where it matters.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { enqueue } from './support/clinic.ts'
import { testDatabase } from './support/database.ts'
import { startPeer } from './support/peer.ts'
import { type Ended, runCli } from './support/process.ts'
import { caughtCli } from './support/screen.ts'
import { testSecret, testSecretValue } from './support/secret.ts'

const PASSWORD = 'word-of-the-database'
const withPassword = (url: string) => Object.assign(new URL(url), { password: PASSWORD }).href
const secret = testSecret()
const empty = await testDatabase({ template: null })
const db = await testDatabase()
const outputs: string[] = []

async function cli(url: string | null, ...args: string[]): Promise<Ended> {
  const ended = await caughtCli(url === null ? null : withPassword(url), args)
  outputs.push(ended.stdout + ended.stderr)
  return ended
}
const put = (...args: string[]) => cli(db.url, 'endpoint', 'put', 'clinic', ...args)
const good = ['--url=https://clinic.example/hooks', `--secret=${secret}`]

/** Refused: one line on stderr with all of these in it, nothing on stdout, and this exit code. */
function refused({ code, stdout, stderr }: Ended, wanted: number, ...parts: RegExp[]) {
  assert.equal(code, wanted, stderr)
  assert.equal(stdout, '')
  assert.match(stderr, /^outledger: [^\n]+\n$/, 'one line')
  for (const part of parts) assert.match(stderr, part)
}

test('no database, or none that can be reached, is said at once', async () => {
  // Sweep, purge and endpoint begin alike.
  const verbs = [['migrate'], ['endpoint', 'list'], ['work']]
  const nowhere = 'postgres://user@127.0.0.1:1/nothing'
  const since = performance.now()
  const [without, wrong, ...unreachable] = await Promise.all([
    cli(null, 'sweep'),
    cli(null, 'sweep', '--database-url=mysql://x/'),
    ...verbs.map((verb) => cli(nowhere, ...verb)),
  ])
  assert.ok(performance.now() - since < 25_000)
  refused(without as Ended, 2, /DATABASE_URL/, /--database-url/)
  refused(wrong as Ended, 2, /postgres:\/\/user@host:5432\/name/)
  for (const ended of unreachable) refused(ended, 1, /ECONNREFUSED/, /check the URL/)
})

test('a database without our schema, or with somebody else’s, is left alone', async () => {
  const foreign = await testDatabase({ template: null })
  await foreign.query('create schema outbox')
  await foreign.query('create table outbox.message (id int)')
  const [missing, work, ...others] = await Promise.all([
    cli(empty.url, 'sweep'),
    cli(empty.url, 'work'),
    ...['migrate', 'purge', 'work'].map((verb) => cli(foreign.url, verb)),
  ])
  for (const ended of [missing, work]) refused(ended as Ended, 1, /0 of \d+ migrations/, /outledger migrate/)
  for (const ended of others) refused(ended, 1, /"outbox" that is not ours/, /ALTER SCHEMA outbox RENAME/)
  assert.deepEqual(await foreign.query(`select relname from pg_class where relnamespace = 'outbox'::regnamespace`), [
    { relname: 'message' },
  ])
})

test('migrate creates the schema, also when several start at once, and a second one finds nothing to do', async () => {
  const several = await Promise.all([1, 2].map(() => runCli(['migrate', '--json'], { DATABASE_URL: empty.url })))
  for (const { code, stderr } of several) assert.deepEqual([code, stderr], [0, ''])
  const applied = several.map(({ stdout }) => (JSON.parse(stdout) as { applied: number }).applied)
  const [written] = await empty.query<{ n: number }>('select count(*)::int as n from outbox.migration')
  assert.equal(
    applied.reduce((a, b) => a + b, 0),
    written?.n,
  )
  assert.deepEqual(await cli(empty.url, 'migrate').then(({ code, stdout }) => [code, stdout]), [
    0,
    'schema outbox is up to date\n',
  ])
})

test('an endpoint that was put is listed as it is; a second put changes what is given and keeps the rest', async () => {
  assert.equal(
    (await cli(db.url, 'endpoint', 'list')).stdout,
    'no endpoints; create one with "outledger endpoint put"\n',
  )
  const first = await put(...good, '--class=hospital', '--max-attempts=7', '--by=ann')
  assert.deepEqual([first.code, first.stdout], [0, 'endpoint clinic → https://clinic.example/hooks (version 1)\n'])
  const second = await put('--timeout-ms=4000', '--allow-private', '--json', '--by=ben')
  assert.equal(second.code, 0)
  const row = JSON.parse(second.stdout)
  const [listed] = JSON.parse((await cli(db.url, 'endpoint', 'list', '--json')).stdout)
  assert.deepEqual(listed, row)
  assert.deepEqual(
    { ...row, ...{ name: 'clinic', class: 'hospital', url: 'https://clinic.example/hooks', secret, maxAttempts: 7 } },
    { ...row, ...{ timeoutMs: 4_000, allowPrivate: true, allowInsecure: false, retryDelayMs: 300_000, version: 2 } },
  )
  const third = JSON.parse((await put('--no-allow-private', '--json')).stdout)
  assert.deepEqual([third.allowPrivate, third.version, third.timeoutMs], [false, 3, 4_000])
  assert.match(
    (await cli(db.url, 'endpoint', 'list')).stdout,
    /^endpoint +class +url\nclinic +hospital +https:\/\/clinic\.example\/hooks\n$/,
  )
  assert.deepEqual(await db.query('select who, verb, subject from outbox.operation order by id limit 2'), [
    { who: 'ann', verb: 'endpoint put', subject: 'clinic' },
    { who: 'ben', verb: 'endpoint put', subject: 'clinic' },
  ])
})

test('sweep and purge say what they did, in words and as JSON', async () => {
  const peer = await startPeer()
  await put(`--url=${peer.url}`, '--allow-insecure', '--allow-private', '--retention-days=0')
  await enqueue(db, ['head', 'next'], { orderingKey: 'k' })
  await db.query(
    `with gone as (delete from outbox.delivery where key = 'head' returning id) delete from outbox.queue where delivery_id = (select id from gone)`,
  )
  assert.deepEqual(JSON.parse((await cli(db.url, 'sweep', '--json')).stdout), {
    promoted: 1,
    forgotten: 0,
    overdueLanes: 0,
  })
  assert.match((await cli(db.url, 'sweep')).stdout, /^0 parked deliveries made due, 0 dead pollers forgotten, 0 lanes/)
  await db.query(
    `with q as (delete from outbox.queue returning delivery_id)
     insert into outbox.receipt (delivery_id, ended_at, delete_after, attempts, ending, certainty)
     select delivery_id, clock_timestamp(), clock_timestamp(), 1, 'delivered', 'delivered' from q`,
  )
  assert.deepEqual(JSON.parse((await cli(db.url, 'purge', '--json')).stdout), {
    ...{ deliveries: 1, attempts: 0, batches: 1, tombstonesExpired: 0 },
  })
  assert.match(
    (await cli(db.url, 'purge')).stdout,
    /^0 deliveries and 0 attempts deleted in 0 batches, 0 tombstones expired\n$/,
  )
})

test('a fault of the database is told by its code: its message may carry anything', async () => {
  await empty.query('drop table outbox.tombstone cascade')
  const { code, stdout, stderr } = await cli(empty.url, 'purge')
  assert.deepEqual([code, stdout, stderr], [1, '', 'outledger: failed with 42P01\n'])
})

test('what the database does not allow is told with its remedy, and a negative number with its range', async () => {
  const role = `powerless_${process.pid}`
  await db.query(`create role ${role} login`)
  const powerless = Object.assign(new URL(db.url), { username: role }).href
  const nowhere = Object.assign(new URL(db.url), { pathname: '/no_such_database' }).href
  for (const [url, args, message, wanted] of [
    [powerless, ['purge'], /the role of the URL lacks the rights; .* \(42501\)/, 1],
    [nowhere, ['migrate'], /the database of the URL does not exist; create it \(3D000\)/, 1],
    [db.url, ['purge', '--tombstone-days', '-1'], /^outledger: --tombstone-days is -1; it must be from 1 to 36500/, 2],
    [db.url, ['purge', '--tombstone-days', ' '], /--tombstone-days is " "; it must be a number/, 2],
  ] as const) {
    const { code, stderr } = await cli(url, ...args)
    assert.match(stderr, message)
    assert.equal(code, wanted)
  }
  await db.query(`drop role ${role}`)
})

test('nothing that was printed contains a secret or the password of the database', () => {
  const all = outputs.join('\n')
  assert.ok(outputs.length > 20)
  for (const hidden of [PASSWORD, testSecretValue, testSecretValue.slice('whsec_'.length)])
    assert.ok(!all.includes(hidden))
})

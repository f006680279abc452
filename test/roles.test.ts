// The four printed roles at work, each through a login that has nothing else.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { outbox } from '../src/index.ts'
import { enqueue, putClinic } from './support/clinic.ts'
import { testDatabase } from './support/database.ts'
import { expire, lease, states } from './support/ledger.ts'
import { startPeer, status } from './support/peer.ts'
import { execute } from './support/plain-client.ts'
import { QUICK, startWorker } from './support/process.ts'
import { createRoles, grantsOf, ROLES, relations, rightsOf } from './support/roles.ts'
import { caughtCli } from './support/screen.ts'
import { until } from './support/until.ts'

const db = await testDatabase()
const peer = await startPeer()
const clinic = await putClinic(db, peer.url, { partitions: 1 })
const PREFIX = `t${process.pid}_`
const roles = await createRoles(db, PREFIX)
const [tables, views] = [await relations(db, 'r'), await relations(db, 'v')]
const DENIED = { code: '42501' }

const message = (key: string) => ({ key, endpoint: 'clinic', type: 't', payload: { patient: 'a name in confidence' } })

test('the enqueuer enqueues in its transactions, and can read, write and call nothing else', async () => {
  const { sql } = roles.enqueuer
  await sql.begin((tx) => outbox.enqueue(tx, message('one')))
  await sql.begin((tx) => outbox.enqueueMany(tx, [message('two'), message('three')]))
  await outbox.enqueueStandalone(sql, message('four'))
  assert.equal((await states(db)).length, 4)
  await assert.rejects(outbox.enqueue(sql as never, { ...message('five'), type: 'no name' }), {
    code: 'not_a_transaction',
  })

  assert.ok(tables.includes('queue') && views.includes('deliveries'))
  for (const name of [...tables, ...views]) await assert.rejects(sql.unsafe(`select from outbox.${name}`), DENIED, name)
  for (const name of tables)
    for (const text of [`delete from outbox.${name}`, `insert into outbox.${name} default values`])
      await assert.rejects(sql.unsafe(text), DENIED, text)
  const others = await db.query<{ call: string }>(
    `select format('select outbox.%I(%s)', proname, (select string_agg('null', ', ') from generate_series(1, pronargs))) as call
     from pg_proc where pronamespace = 'outbox'::regnamespace and proname not in ('enqueue', 'enqueue_many')`,
  )
  for (const { call } of others) await assert.rejects(sql.unsafe(call), DENIED, call)
  const { code, stderr } = await caughtCli(roles.enqueuer.url, ['sweep'])
  assert.equal(code, 1)
  assert.match(
    stderr,
    /the role of the URL lacks the rights; grant them \("outledger migrate --print-grants" prints roles/,
  )
})

const count = async (text: string): Promise<number> => (await db.query(text)).length

test('the poller delivers, retries, takes back, sweeps and purges, and changes no endpoint', async () => {
  await enqueue(db, ['left-behind'])
  assert.ok((await lease(db, clinic, { poller: 'dead' })).some(({ key }) => key === 'left-behind'))
  await expire(db, 'left-behind')
  await enqueue(db, ['fails-once', 'follower'], { orderingKey: 'one-after-the-other' })
  await enqueue(db, ['old'])
  peer.answer((response, { key, number }) => response.writeHead(key === 'fails-once' && number === 1 ? 500 : 200).end())

  const worker = await startWorker({ url: roles.poller.url }, { ...QUICK, 'purge-interval-ms': 1_000 })
  await until('its first attempt has failed', () =>
    count(`select from outbox.attempts where key = 'fails-once' and reason = 'http_500'`),
  )
  await db.age('fails-once', '10 minutes')
  await until('what is due is delivered', () =>
    count(`select from outbox.receipt having count(*) filter (where ending = 'delivered') >= 4`),
  )
  await db.age('old', '31 days')
  await until('the old one is purged', () => count('select from outbox.purge_run'))
  worker.kill('SIGTERM')
  assert.deepEqual(await worker.ended, { code: 0, signal: null })
  assert.deepEqual(worker.complaints, [])
  assert.deepEqual(
    worker.log.filter(({ msg }) => String(msg).includes('trouble')),
    [],
  )
  assert.deepEqual(
    await db.query(
      `select key, outcome, reason from outbox.attempts where key in ('left-behind', 'follower') order by key, number`,
    ),
    [
      { key: 'follower', outcome: 'delivered', reason: null },
      { key: 'left-behind', outcome: 'unknown', reason: 'worker_lost' },
      { key: 'left-behind', outcome: 'delivered', reason: null },
    ],
  )
  assert.deepEqual(await db.query('select from outbox.poller'), [], 'it has left')
  for (const verb of ['sweep', 'purge']) assert.equal((await caughtCli(roles.poller.url, [verb])).code, 0)

  for (const text of [
    `update outbox.endpoint set url = 'https://elsewhere.test/'`,
    'delete from outbox.endpoint',
    'insert into outbox.delivery default values',
    `update outbox.delivery set payload = '{}'`,
    'insert into outbox.queue default values',
    'select from outbox.operation',
    'update outbox.version set major = 2',
    'delete from outbox.migration',
    `select outbox.enqueue('clinic', 'k', 't', '{}')`,
  ])
    await assert.rejects(roles.poller.sql.unsafe(text), DENIED, text)
})

/** Tables that the role may read are few; it may change none but these. */
async function refusedBut(role: 'reader' | 'operator', readable: readonly string[], writable: readonly string[]) {
  const { sql } = roles[role]
  for (const name of tables) {
    if (!readable.includes(name)) await assert.rejects(sql.unsafe(`select from outbox.${name}`), DENIED, name)
    if (!writable.includes(name))
      await assert.rejects(sql.unsafe(`insert into outbox.${name} default values`), DENIED, name)
    await assert.rejects(sql.unsafe(`delete from outbox.${name}`), DENIED, name)
  }
  await assert.rejects(sql.unsafe(`select outbox.enqueue('clinic', 'k', 't', '{}')`), DENIED)
}

test('the reader sees every view and no table, and no view shows a payload', async () => {
  assert.ok(await count(`select from outbox.delivery where payload::text like '%in confidence%'`))
  let rows = 0
  for (const name of views) {
    const seen = await roles.reader.sql.unsafe(`select v::text as row from outbox.${name} v`)
    rows += seen.length
    for (const { row } of seen) assert.doesNotMatch(row, /in confidence/, name)
  }
  assert.ok(rows > 10)
  for (const args of [['status'], ['list'], ['show', 'one']]) {
    const { code, stderr } = await caughtCli(roles.reader.url, args)
    assert.deepEqual([code, stderr], [0, ''], args.join(' '))
  }
  await refusedBut('reader', ['migration', 'version'], [])
})

test('the operator changes endpoints on record, sees what the reader sees, and moves no delivery', async () => {
  const put = await caughtCli(roles.operator.url, ['endpoint', 'put', 'clinic', '--timeout-ms=5000', '--by=ann'])
  assert.deepEqual([put.code, put.stderr], [0, ''])
  const list = await caughtCli(roles.operator.url, ['endpoint', 'list', '--json'])
  assert.match(list.stdout, /"timeoutMs":5000/)
  assert.deepEqual(await db.query(`select subject, verb from outbox.operation where who = 'ann'`), [
    { subject: 'clinic', verb: 'endpoint put' },
  ])
  peer.answer(status(200))
  for (const args of [['pause', '--why=x'], ['resume'], ['show'], ['test']]) {
    const { code, stderr } = await caughtCli(roles.operator.url, [
      'endpoint',
      args[0] as string,
      'clinic',
      ...args.slice(1),
    ])
    assert.deepEqual([code, stderr], [0, ''], args[0])
  }
  for (const name of views) await roles.operator.sql.unsafe(`select from outbox.${name}`)
  await assert.rejects(roles.operator.sql.unsafe('update outbox.queue set attempts = 0'), DENIED)
  await assert.rejects(roles.operator.sql.unsafe(`update outbox.operation set who = 'nobody'`), DENIED)
  await refusedBut('operator', ['migration', 'version', 'endpoint', 'operation', 'queue'], ['endpoint', 'operation'])
})

test('the roles cannot log in, own nothing and are nobody special; the public has no right at all', async () => {
  const groups = ROLES.map((name) => roles[name].group)
  assert.deepEqual(
    await db.query(
      `select distinct rolcanlogin or rolsuper or rolcreaterole or rolcreatedb or rolreplication or rolbypassrls as special, count(*)::int as n
       from pg_roles where rolname = any ($1::text::text[]) group by 1`,
      `{${groups.join()}}`,
    ),
    [{ special: false, n: 4 }],
  )
  assert.deepEqual(
    await db.query(
      `select from pg_shdepend where refobjid = any (array(select oid from pg_roles where rolname = any ($1::text::text[]))) and deptype = 'o'`,
      `{${groups.join()}}`,
    ),
    [],
  )
  assert.deepEqual(
    await db.query(
      `select p.oid::regprocedure::text as open from pg_proc p, aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) g
       where p.pronamespace = 'outbox'::regnamespace and g.grantee = 0
       union all
       select c.oid::regclass::text from pg_class c, aclexplode(c.relacl) g where c.relnamespace = 'outbox'::regnamespace and g.grantee = 0`,
    ),
    [],
  )
})

test('the SQL may be run again: it adds what is new and takes back what is not in it', async () => {
  const all = async () => Promise.all(ROLES.map((name) => rightsOf(db, roles[name].group)))
  const before = await all()
  await execute(db, grantsOf(PREFIX))
  assert.deepEqual(await all(), before)
  await db.query(`grant delete on outbox.queue to ${roles.reader.group}`)
  await db.query(`grant select (payload) on outbox.delivery to ${roles.operator.group}`)
  await db.query('create view outbox.new_one as select 1 as one')
  await execute(db, grantsOf(PREFIX))
  const seen = 'SELECT on outbox.new_one'
  assert.deepEqual(await all(), [before[0], before[1], ...before.slice(2).map((rights) => [...rights, seen].sort())])
})

test('--print-grants prints that SQL', async () => {
  const { code, stdout } = await caughtCli(null, ['migrate', '--print-grants'])
  assert.deepEqual([code, stdout], [0, `${grantsOf('outledger_')}\n`])
})

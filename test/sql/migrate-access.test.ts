// What a migration needs: a role that may create, its turn, and tables that nobody holds for long.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, test } from 'node:test'
import { migrate } from '../../src/migrate.ts'
import { migrations, requireSchema } from '../../src/schema-version.ts'
import { connect } from '../../src/sql/executor.ts'
import { type TestDatabase, testDatabase } from '../support/database.ts'
import { add, addEndpoint } from '../support/ledger.ts'
import { olderSchema } from '../support/older-schema.ts'
import { dropRoles } from '../support/roles.ts'
import { schemaDump } from '../support/schema-dump.ts'
import { begin } from '../support/session.ts'
import { until } from '../support/until.ts'

const ALL = migrations().length
const TURN = `select pg_advisory_xact_lock(hashtextextended('outledger migrate', 0))`
const nameOf = (db: TestDatabase) => new URL(db.url).pathname.slice(1)

// Five seconds pass here, once, for three promises.
test('a table that stays locked elsewhere ends the migration after five seconds with nothing changed; a turn is waited for longer', async () => {
  const [db, other] = await Promise.all([olderSchema(2), testDatabase({ template: null })])
  await other.query(`alter database ${nameOf(other)} set lock_timeout = '50ms'`)
  const before = await schemaDump(db)
  const [reader, migrator] = [await begin(db), await begin(other)]
  await reader.run('select from outbox.endpoint', [])
  await migrator.run(TURN, [])

  let waiting = true
  const queued = migrate(other.url).finally(() => {
    waiting = false
  })
  await until('the other migration waits for its turn', async () => {
    const [row] = await other.query<{ n: number }>(
      `select count(*)::int as n from pg_locks where not granted and locktype = 'advisory' and database = (select oid from pg_database where datname = $1)`,
      nameOf(other),
    )
    return row?.n
  })
  const since = performance.now()
  await assert.rejects(migrate(db.url), {
    code: 'database_refused',
    message:
      'another session holds a lock that this statement waited for in vain; nothing was changed. Let its transaction end (pg_stat_activity shows it), then run this again (55P03)',
  })
  const waited = performance.now() - since
  assert.ok(waited > 4_900 && waited < 15_000, `waited ${waited} ms`)
  assert.equal(waiting, true)
  assert.deepEqual(await schemaDump(db), before)

  await Promise.all([reader.rollback(), migrator.rollback()])
  assert.deepEqual(await queued, { applied: ALL })
  assert.deepEqual(await migrate(db.url), { applied: ALL - 2 })
})

test('those that waited for their turn see what was done meanwhile, whatever isolation their role has', async () => {
  const db = await testDatabase({ template: null })
  await db.query(`alter database ${nameOf(db)} set default_transaction_isolation = 'serializable'`)
  const all = await Promise.all(Array.from({ length: 4 }, () => migrate(db.url)))
  assert.deepEqual(all.map(({ applied }) => applied).sort(), [0, 0, 0, ALL])
})

const OWNERS: [why: string, prepare: (database: string, role: string) => string][] = [
  ['that may only create in the database', (database, role) => `grant create on database ${database} to ${role}`],
  ['that owns an empty schema and may create nothing else', (_, role) => `create schema outbox authorization ${role}`],
]

for (const [why, prepare] of OWNERS)
  test(`a role ${why} can migrate and use the schema, without an extension`, async () => {
    const db = await testDatabase({ template: null })
    const role = `owner_${randomUUID().replaceAll('-', '')}`
    await db.query(`create role ${role} login nosuperuser nocreatedb nocreaterole`)
    after(() => dropRoles(db, role))
    await db.query(prepare(nameOf(db), role))
    const url = Object.assign(new URL(db.url), { username: role }).href
    assert.deepEqual(await migrate(url), { applied: ALL })
    const own = connect(url, { max: 1, deadlineMs: 10_000 })
    try {
      await requireSchema(own)
      await addEndpoint(own)
      await add(own, 'mine')
    } finally {
      await own.close()
    }
    assert.deepEqual(await db.query('select extname from pg_extension'), [{ extname: 'plpgsql' }])
    assert.deepEqual(
      await db.query(
        `select distinct relowner::regrole::text as owner from pg_class where relnamespace = 'outbox'::regnamespace`,
      ),
      [{ owner: role }],
    )
  })

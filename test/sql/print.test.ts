// `outledger migrate --print`: for people whose database is changed by somebody else, with another client.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { drizzle } from 'drizzle-orm/postgres-js'
import { migrate as drizzleMigrate } from 'drizzle-orm/postgres-js/migrator'
import { migrate, migrationSql } from '../../src/migrate.ts'
import { migrations } from '../../src/schema-version.ts'
import { testDatabase } from '../support/database.ts'
import { olderSchema } from '../support/older-schema.ts'
import { execute } from '../support/plain-client.ts'
import { schemaDump } from '../support/schema-dump.ts'
import { caughtCli } from '../support/screen.ts'

const ALL = migrations().length

const migrated = await testDatabase({ template: null })
await migrate(migrated.url)
const wanted = await schemaDump(migrated)

test('what is printed without a database makes an empty one the same as migrate does, down to the rows of migrations', async () => {
  const db = await testDatabase({ template: null })
  const { code, stdout, stderr } = await caughtCli(null, ['migrate', '--print'])
  assert.deepEqual([code, stderr], [0, ''])
  assert.match(stdout, /^-- outledger .+\nbegin isolation level read committed;\n[\s\S]+\ncommit;\n$/)
  await execute(db, stdout)
  assert.ok(wanted.filter(({ what }) => what === 'migration').length === ALL && wanted.length > 200)
  assert.deepEqual(await schemaDump(db), wanted)
  const again = await caughtCli(db.url, ['migrate'])
  assert.equal(again.stdout, 'schema outbox is up to date\n')
  assert.match(await migrationSql(db.url), /^-- outledger [\d.]+, schema outbox: up to date$/)
})

test('and the same as the migrator of drizzle does, which finds nothing to do afterwards', async () => {
  const db = await testDatabase({ template: null })
  const config = { migrationsFolder: 'drizzle', migrationsSchema: 'outbox', migrationsTable: 'migration' }
  const client = db.sql
  await drizzleMigrate(drizzle(client), config)
  assert.deepEqual(await schemaDump(db), wanted)
  await drizzleMigrate(drizzle(migrated.sql), config)
  assert.deepEqual(await schemaDump(migrated), wanted)
})

test('with a database only what it lacks is printed, and that fits no other state', async () => {
  const [db, empty] = await Promise.all([olderSchema(2), testDatabase({ template: null })])
  const before = migrations().slice(0, 2)
  const text = await migrationSql(db.url)
  assert.ok(!text.includes(before[0]?.hash ?? '?') && text.includes(migrations()[2]?.hash ?? '?'))
  await assert.rejects(execute(empty, text), /relation "outbox.migration" does not exist/)
  await execute(db, text)
  assert.deepEqual(await schemaDump(db), wanted)
  await assert.rejects(execute(db, text), /printed for another state of schema outbox; print it again/)
  assert.deepEqual(await schemaDump(db), wanted, 'nothing of it was done')
})

test('what is printed changes nothing when a statement of it fails', async () => {
  const db = await testDatabase({ template: null })
  await db.query('create schema outbox')
  await db.query('create domain outbox.version as int')
  await assert.rejects(execute(db, await migrationSql()), { code: '42710' })
  assert.deepEqual(await db.query(`select 1 from pg_class where relnamespace = 'outbox'::regnamespace`), [])
})

test('--print says no to --json, and prints nothing of a database that is unfit', async () => {
  const foreign = await testDatabase({ template: null })
  await foreign.query('create schema outbox')
  await foreign.query('create table outbox.messages (id int)')
  const [json, unfit] = await Promise.all([
    caughtCli(null, ['migrate', '--print', '--json']),
    caughtCli(foreign.url, ['migrate', '--print']),
  ])
  assert.deepEqual([json?.code, unfit?.code, json?.stdout, unfit?.stdout], [2, 1, '', ''])
  assert.match(json?.stderr ?? '', /--print and --print-grants print SQL; leave --json out/)
  assert.match(unfit?.stderr ?? '', /has a schema "outbox" that is not ours/)
})

test('what is printed without a database touches no schema "outbox" that is not ours', async () => {
  const foreign = await testDatabase({ template: null })
  await foreign.query('create schema outbox')
  await foreign.query('create table outbox.messages (id int)')
  await assert.rejects(execute(foreign, await migrationSql()), /has a schema "outbox" that is not ours/)
  const tables = await foreign.query(`select relname::text from pg_class where relnamespace = 'outbox'::regnamespace`)
  assert.deepEqual(tables, [{ relname: 'messages' }])
})

test('the migrations ascend in time, by which drizzle knows what is missing', () => {
  const made = migrations().map((migration) => migration.made)
  assert.deepEqual(
    made,
    made.toSorted((a, b) => a - b),
  )
  assert.equal(new Set(made).size, made.length)
})

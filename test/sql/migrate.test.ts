import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { migrate } from '../../src/migrate.ts'
import { migrations, requireSchema } from '../../src/schema-version.ts'
import { connect } from '../../src/sql/executor.ts'
import { inspect } from '../../src/sql/inspect.ts'
import { testDatabase, urlOf } from '../support/database.ts'
import { addEndpoint } from '../support/ledger.ts'

const MIGRATIONS = migrations().length

/** What `requireSchema` says to a client of this URL. */
async function checked(url: string): Promise<void> {
  const db = connect(url, { max: 1, deadlineMs: 10_000 })
  try {
    await requireSchema(db)
  } finally {
    await db.close()
  }
}

test('six migrations at once of an empty database: one applies them, all succeed', async () => {
  const db = await testDatabase({ template: null })
  await assert.rejects(checked(db.url), {
    code: 'schema_missing',
    message: `the database has 0 of ${MIGRATIONS} migrations of schema outbox; run "outledger migrate"`,
  })
  const all = await Promise.all(Array.from({ length: 6 }, () => migrate(db.url)))
  assert.deepEqual(all.map(({ applied }) => applied).sort(), [0, 0, 0, 0, 0, MIGRATIONS])
  await checked(db.url)
  await addEndpoint(db)
  assert.deepEqual(await migrate(db.url), { applied: 0 })
  assert.deepEqual(await db.query('select name from outbox.endpoint'), [{ name: 'clinic' }], 'nothing was touched')
})

test('an older schema is refused with the counts and the command', async () => {
  const db = await testDatabase()
  await db.query('delete from outbox.migration where id = (select max(id) from outbox.migration)')
  await assert.rejects(checked(db.url), {
    code: 'schema_missing',
    message: `the database has ${MIGRATIONS - 1} of ${MIGRATIONS} migrations of schema outbox; run "outledger migrate"`,
  })
})

test('a schema "outbox" that is not ours is refused and left as it is', async () => {
  for (const content of [
    'create table outbox.messages (id int)',
    'create table outbox.migration (id int)',
    'create function outbox.f() returns int language sql as $$ select 1 $$',
    'create view outbox.v as select 1 as one',
  ]) {
    const db = await testDatabase({ template: null })
    await db.query('create schema outbox')
    await db.query(content)
    const foreign = {
      code: 'foreign_schema',
      message: /has a schema "outbox" that is not ours; rename it \(ALTER SCHEMA outbox RENAME TO …\)/,
    }
    await assert.rejects(migrate(db.url), foreign)
    await assert.rejects(checked(db.url), foreign)
    assert.equal((await inspect(db)).ours, false)
  }
})

test('an empty schema "outbox", prepared by an administrator, is used', async () => {
  const db = await testDatabase({ template: null })
  await db.query('create schema outbox')
  assert.deepEqual(await migrate(db.url), { applied: MIGRATIONS })
})

test('a database in another encoding is refused', async () => {
  const db = await testDatabase({ template: null })
  const name = `latin_${randomUUID().replaceAll('-', '')}`
  await db.query(`create database ${name} template template0 encoding 'LATIN1' lc_collate 'C' lc_ctype 'C'`)
  try {
    const refused = {
      code: 'unsupported_database',
      message: /has encoding LATIN1; payloads are UTF-8: create one with ENCODING 'UTF8'/,
    }
    await assert.rejects(migrate(urlOf(name)), refused)
    await assert.rejects(checked(urlOf(name)), refused)
  } finally {
    await db.query(`drop database ${name} with (force)`)
  }
})

test('a role whose transactions are not READ COMMITTED is refused with the command that cures it', async () => {
  const db = await testDatabase()
  const role = `iso_${randomUUID().replaceAll('-', '')}`
  await db.query(`create role ${role} login superuser`)
  const url = Object.assign(new URL(db.url), { username: role }).href
  try {
    await db.query(`alter role ${role} set default_transaction_isolation = 'repeatable read'`)
    const error = await checked(url).then(
      () => assert.fail('accepted'),
      (refusal) => refusal as Error & { code: string },
    )
    assert.equal(error.code, 'unsupported_database')
    assert.match(error.message, new RegExp(`isolation of role ${role} is repeatable read, under which claims fail`))
    const cure = error.message.slice(error.message.indexOf('ALTER ROLE'))
    assert.equal(cure, `ALTER ROLE "${role}" SET default_transaction_isolation = 'read committed'`)
    await db.query(cure)
    await checked(url)
  } finally {
    await db.query(`drop role ${role}`)
  }
})

test('a database that cannot be reached says so, without the password in the URL', async () => {
  const url = 'postgres://user:PASSWORD@127.0.0.1:1/none'
  for (const verb of [migrate, checked]) {
    await assert.rejects(verb(url), (error: Error & { code: string }) => {
      assert.deepEqual([error.code, error.message.includes('PASSWORD')], ['database_unreachable', false])
      assert.match(error.message, /no connection to the database \(ECONNREFUSED\)/)
      return true
    })
  }
})

// Which schema this code works with: not an older one, a newer one of its own major, never another major.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { migrate, migrationSql } from '../../src/migrate.ts'
import { migrations, requireSchema } from '../../src/schema-version.ts'
import { testDatabase } from '../support/database.ts'
import { olderSchema } from '../support/older-schema.ts'
import { schemaDump } from '../support/schema-dump.ts'
import { caughtCli } from '../support/screen.ts'

const ALL = migrations().length

test('beside a newer schema of its major the code goes on, and migrate leaves it as it is', async () => {
  const db = await testDatabase()
  await db.query(
    `insert into outbox.migration (hash, created_at) select 'newer', max(created_at) + 1 from outbox.migration`,
  )
  await requireSchema(db)
  const before = await schemaDump(db)
  assert.deepEqual(await migrate(db.url), { applied: 0 })
  assert.deepEqual(await schemaDump(db), before)
})

test('a schema from before there were majors is an older one', async () => {
  const db = await olderSchema(2)
  await assert.rejects(requireSchema(db), {
    code: 'schema_missing',
    message: `the database has 2 of ${ALL} migrations of schema outbox; run "outledger migrate"`,
  })
  assert.deepEqual(await migrate(db.url), { applied: ALL - 2 })
  await requireSchema(db)
})

const MAJORS: [major: number, remedy: string][] = [
  [2, 'upgrade outledger here to a version for major 2'],
  [0, 'stop every poller of that major, then upgrade the schema as CHANGELOG.md says'],
]

for (const [major, remedy] of MAJORS)
  test(`a schema of major ${major} is refused by every way in, and says which side is to be upgraded`, async () => {
    const db = await testDatabase()
    await db.query('update outbox.version set major = $1::text::int', major)
    const before = await schemaDump(db)
    const refused = (error: Error & { code: string }) => {
      assert.equal(error.code, 'schema_version')
      assert.match(
        error.message,
        new RegExp(`^schema outbox is of major ${major}, and outledger \\d+\\.\\d+\\.\\d+ works with major 1; `),
      )
      assert.ok(error.message.endsWith(`; ${remedy}`), error.message)
      return true
    }
    await assert.rejects(requireSchema(db), refused)
    // Fewer or more migrations do not matter then.
    await db.query('delete from outbox.migration where id > 3')
    await assert.rejects(requireSchema(db), refused)
    await assert.rejects(migrate(db.url), refused)
    await assert.rejects(migrationSql(db.url), refused)
    const { code, stderr } = await caughtCli(db.url, ['sweep'])
    assert.equal(code, 1)
    assert.ok(stderr.endsWith(`; ${remedy}\n`))
    const lost = before.filter(({ what, is }) => !(what === 'migration' && Number(is) > 3))
    assert.deepEqual(await schemaDump(db), lost, 'nothing was migrated')
  })

test('the check costs two statements', async () => {
  const db = await testDatabase()
  const seen: string[] = []
  await requireSchema({
    run: (text, values) => {
      seen.push(text)
      return db.run(text, values)
    },
  })
  assert.equal(seen.length, 2, seen.join('\n'))
})

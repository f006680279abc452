// A database as an older version of the code has left it: with our first migrations only.
import { migrations } from '../../src/schema-version.ts'
import { type TestDatabase, testDatabase } from './database.ts'

export async function olderSchema(count: number): Promise<TestDatabase> {
  const db = await testDatabase({ template: null })
  await db.query('create schema outbox')
  await db.query('create table outbox.migration (id serial primary key, hash text not null, created_at bigint)')
  for (const { statements, hash, made } of migrations().slice(0, count)) {
    for (const statement of statements) await db.sql.unsafe(statement)
    await db.query('insert into outbox.migration (hash, created_at) values ($1, $2)', hash, made)
  }
  return db
}

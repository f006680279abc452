import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, test } from 'node:test'
import postgres from 'postgres'
import { testDatabase } from '../support/database.ts'
import { add, addEndpoint } from '../support/ledger.ts'
import { dropRoles } from '../support/roles.ts'

const db = await testDatabase()
await addEndpoint(db)
await add(db, 'mine')

const role = `app_${randomUUID().replaceAll('-', '')}`
await db.query(`create role ${role} login`)
const app = postgres(Object.assign(new URL(db.url), { username: role }).href, {
  max: 1,
  fetch_types: false,
  onnotice: () => {},
})
after(async () => {
  await app.end({ timeout: 1 })
  await dropRoles(db, role)
})

const DENIED = { code: '42501' }
const enqueue = (key: string) => app.unsafe(`select inserted from outbox.enqueue('clinic', '${key}', 't', '{"a":1}')`)

const relations = async (kind: string): Promise<string[]> =>
  (
    await db.query<{ name: string }>(
      `select relname::text as name from pg_class where relnamespace = 'outbox'::regnamespace and relkind = '${kind}'`,
    )
  ).map(({ name }) => name)

test('another role may do nothing until it is told', async () => {
  await assert.rejects(enqueue('too-early'), DENIED)
  await db.query(`grant usage on schema outbox to ${role}`)
  await assert.rejects(enqueue('still-too-early'), DENIED)
})

test('with EXECUTE and USAGE a role may enqueue, with the rights of the owner, and nothing else', async () => {
  await db.query(`grant execute on function outbox.enqueue to ${role}`)
  assert.deepEqual([...(await enqueue('granted'))], [{ inserted: true }])
  const [tables, views] = [await relations('r'), await relations('v')]
  assert.ok(tables.includes('queue') && tables.includes('migration') && views.includes('dead'))
  for (const name of [...tables, ...views]) await assert.rejects(app.unsafe(`select from outbox.${name}`), DENIED, name)
  for (const name of tables) await assert.rejects(app.unsafe(`delete from outbox.${name}`), DENIED, name)
  for (const text of [
    `insert into outbox.queue (delivery_id, next_attempt_at, endpoint_id, lane) values (1, now(), 1, 1024)`,
    `update outbox.delivery set payload = '{}'`,
    'truncate outbox.receipt',
  ])
    await assert.rejects(app.unsafe(text), DENIED, text)
})

test('a view can be granted without its tables', async () => {
  await db.query(`grant select on outbox.deliveries to ${role}`)
  assert.deepEqual(
    [...(await app.unsafe('select key from outbox.deliveries order by id'))],
    [{ key: 'mine' }, { key: 'granted' }],
  )
  await assert.rejects(app.unsafe('select from outbox.delivery'), DENIED)
})

// A function with the owner's rights must not run what its caller has put in the way.
test('the caller’s search_path does not lead the function astray', async () => {
  await db.query(`grant create on database ${new URL(db.url).pathname.slice(1)} to ${role}`)
  await app.unsafe(`create schema evil`)
  await app.unsafe(
    `create function evil.sha256(bytea) returns bytea language plpgsql as $$ begin raise exception 'led astray'; end $$`,
  )
  await app.unsafe(`create function evil.octet_length(text) returns int language sql as $$ select 1 $$`)
  await app.unsafe('set search_path = evil, pg_catalog, outbox')
  assert.deepEqual([...(await enqueue('unmoved'))], [{ inserted: true }])
  await app.unsafe('reset search_path')
})

test('a trigger enqueues in the transaction of its statement, and its refusal undoes that', async () => {
  await db.query('create table payment (id int primary key, amount int)')
  await db.query(
    `create function announce() returns trigger language plpgsql as $$
     begin
       perform outbox.enqueue('clinic', 'payment:' || new.id, 'payment.captured', row_to_json(new)::text, p_ordering_key => '');
       return new;
     end $$`,
  )
  await db.query('create trigger announce after insert on payment for each row execute function announce()')
  await assert.rejects(db.query('insert into payment values (1842, 100)'), /outledger: ordering_key is 0 bytes long/)
  assert.deepEqual(await db.query('select from payment'), [])
  await db.query(`create or replace function announce() returns trigger language plpgsql as $$
     begin
       perform outbox.enqueue('clinic', 'payment:' || new.id, 'payment.captured', row_to_json(new)::text);
       return new;
     end $$`)
  await db.query('insert into payment values (1842, 100)')
  assert.deepEqual(await db.query(`select payload::text as payload from outbox.delivery where key = 'payment:1842'`), [
    { payload: '{"id":1842,"amount":100}' },
  ])
})

// The printed roles under names of this test alone (roles belong to the whole server), each with a login that is its member.
import { randomBytes } from 'node:crypto'
import { after } from 'node:test'
import postgres from 'postgres'
import { grantsText } from '../../src/sql/grants.ts'
import type { TestDatabase } from './database.ts'
import { execute } from './plain-client.ts'

export const ROLES = ['enqueuer', 'poller', 'reader', 'operator'] as const
export type RoleName = (typeof ROLES)[number]

export interface Login {
  /** The printed role, which cannot log in. */
  readonly group: string
  /** As its member, which has nothing else. */
  readonly url: string
  /** One connection of the member. */
  readonly sql: postgres.Sql
}

/** What `outledger migrate --print-grants` prints, under this prefix instead of ours. */
export const grantsOf = (prefix: string): string => grantsText().replaceAll('outledger_', prefix)

export async function createRoles(
  db: TestDatabase,
  prefix = `o${randomBytes(8).toString('hex')}_`,
): Promise<Record<RoleName, Login>> {
  await execute(db, grantsOf(prefix))
  const logins = {} as Record<RoleName, Login>
  for (const name of ROLES) {
    const group = `${prefix}${name}`
    await db.query(`create role ${group}_login login in role ${group}`)
    const url = Object.assign(new URL(db.url), { username: `${group}_login` }).href
    logins[name] = { group, url, sql: postgres(url, { max: 1, fetch_types: false, onnotice: () => {} }) }
  }
  after(async () => {
    for (const { group, sql } of Object.values(logins)) {
      await sql.end({ timeout: 1 })
      await dropRoles(db, `${group}_login`, group)
    }
  })
  return logins
}

/** Roles belong to the server: they would outlive the run where that is not ours. */
export async function dropRoles(db: TestDatabase, ...names: string[]): Promise<void> {
  const admin = postgres(db.url, { max: 1, onnotice: () => {} })
  await admin.unsafe(`drop owned by ${names.join()} cascade`)
  await admin.unsafe(`drop role ${names.join()}`)
  await admin.end({ timeout: 1 })
}

/** Names in schema outbox: of tables (`r`) or of views (`v`). */
export async function relations(db: TestDatabase, kind: 'r' | 'v'): Promise<string[]> {
  const rows = await db.query<{ name: string }>(
    `select relname::text as name from pg_class where relnamespace = 'outbox'::regnamespace and relkind = $1::text::"char" order by 1`,
    kind,
  )
  return rows.map(({ name }) => name)
}

/** All that a role has on schema outbox, as GRANT and REVOKE name it. */
export async function rightsOf(db: TestDatabase, role: string): Promise<string[]> {
  const rows = await db.query<{ right: string }>(
    `select format('%s on %s', g.privilege_type, c.oid::regclass) as right
     from pg_class c cross join aclexplode(c.relacl) g
     where c.relnamespace = 'outbox'::regnamespace and g.grantee = $1::text::regrole
     union all
     select format('%s (%I) on %s', g.privilege_type, a.attname, c.oid::regclass)
     from pg_class c join pg_attribute a on a.attrelid = c.oid cross join aclexplode(a.attacl) g
     where c.relnamespace = 'outbox'::regnamespace and g.grantee = $1::text::regrole
     union all
     select format('%s on function %s', g.privilege_type, p.oid::regprocedure)
     from pg_proc p cross join aclexplode(p.proacl) g
     where p.pronamespace = 'outbox'::regnamespace and g.grantee = $1::text::regrole
     union all
     select format('%s on schema %s', g.privilege_type, n.nspname)
     from pg_namespace n cross join aclexplode(n.nspacl) g
     where n.nspname = 'outbox' and g.grantee = $1::text::regrole
     order by 1`,
    role,
  )
  return rows.map(({ right }) => right)
}

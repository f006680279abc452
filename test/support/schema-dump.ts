// All that a migration makes, as text from the catalog, so that two ways to make it can be compared.
import type { Executor } from '../../src/sql/executor.ts'

// Owners and their names differ between servers; whoever made it is "owner" here.
const acl = (column: string, kind: string, owner: string) =>
  `(select string_agg(coalesce(nullif(g.grantee, 0)::regrole::text, 'public') || '=' || g.privilege_type, ',' order by 1)
    from aclexplode(coalesce(${column}, acldefault('${kind}', ${owner}))) g where g.grantee <> ${owner})`

const TEXT = `
select 'relation' as what, concat_ws(' ', c.relname, c.relkind, array_to_string(c.reloptions, ',')) as is,
       concat_ws(' | ', obj_description(c.oid, 'pg_class'), ${acl('c.relacl', 'r', 'c.relowner')},
         case when c.relkind = 'v' then pg_get_viewdef(c.oid) when c.relkind = 'i' then pg_get_indexdef(c.oid) end) as has
from pg_class c where c.relnamespace = 'outbox'::regnamespace
union all
select 'column', concat_ws(' ', c.relname, a.attnum, a.attname),
       concat_ws(' | ', format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attidentity, pg_get_expr(d.adbin, d.adrelid),
         col_description(c.oid, a.attnum), a.attacl::text)
from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
where c.relnamespace = 'outbox'::regnamespace and c.relkind in ('r', 'v')
union all
select 'constraint', conname, pg_get_constraintdef(oid) from pg_constraint where connamespace = 'outbox'::regnamespace
union all
select 'function', p.oid::regprocedure::text,
       concat_ws(' | ', pg_get_functiondef(p.oid), obj_description(p.oid, 'pg_proc'), ${acl('p.proacl', 'f', 'p.proowner')})
from pg_proc p where p.pronamespace = 'outbox'::regnamespace
union all
select 'schema', nspname, concat_ws(' | ', obj_description(oid, 'pg_namespace'), ${acl('nspacl', 'n', 'nspowner')})
from pg_namespace where nspname = 'outbox'
union all
select 'migration', id::text, hash || ' ' || created_at from outbox.migration
order by 1, 2, 3`

export interface Made {
  readonly what: string
  readonly is: string
  readonly has: string | null
}

export async function schemaDump(db: Executor): Promise<Made[]> {
  const made = await db.run<Made>(TEXT, [])
  if (!made.some(({ what, is }) => what === 'constraint' && is === 'version_only')) return made
  return [
    ...made,
    ...(await db.run<Made>(`select 'version' as what, major::text as is, "only"::text as has from outbox.version`, [])),
  ]
}

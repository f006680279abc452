// The views as the database itself describes them: the comments that `\d+` shows.

interface Column {
  readonly name: string
  readonly comment: string
}

export interface View {
  readonly name: string
  readonly comment: string
  readonly columns: readonly Column[]
}

const VIEWS = `
select c.relname as name, coalesce(obj_description(c.oid, 'pg_class'), '') as comment,
  (select json_agg(json_build_object('name', a.attname, 'comment', coalesce(col_description(c.oid, a.attnum), '')) order by a.attnum)
   from pg_attribute a where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped) as columns
from pg_class c
where c.relnamespace = 'outbox'::regnamespace and c.relkind = 'v'
order by c.oid`

/** All views of the schema outbox, in the order in which they were made. */
export async function readCatalog(query: (text: string) => Promise<View[]>): Promise<View[]> {
  return [...(await query(VIEWS))]
}

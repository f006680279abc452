// Who needs what on the schema: one table, from which the SQL is made. The tests take each right away and see what fails.

/** Of a table, or of some of its columns. */
type Right = 'select' | 'insert' | 'update' | 'delete' | `update (${string})`

/** What the check at the start of every verb reads. */
const CHECKED = { migration: ['select'], version: ['select'] } as const

/** What pollers learn of an endpoint; its settings are not theirs to change. */
const HEALTH = [
  ...['failures', 'failing_since', 'rejections', 'trip_ms', 'tripped_until', 'backoff_until'],
  ...['paused_at', 'paused_reason'],
]

const RIGHTS: Readonly<Record<string, Readonly<Record<string, readonly Right[]>>>> = {
  outledger_poller: {
    ...CHECKED,
    endpoint: ['select', `update (${HEALTH.join(', ')})`],
    operation: ['insert'],
    delivery: ['select', 'update (payload_sha256, payload_bytes)', 'delete'],
    queue: ['select', 'update', 'delete'],
    attempt: ['select', 'insert', 'update', 'delete'],
    receipt: ['select', 'insert', 'update', 'delete'],
    poller: ['select', 'insert', 'update', 'delete'],
    tombstone: ['select', 'insert', 'update', 'delete'],
    purge_run: ['select', 'insert', 'update'],
  },
  outledger_reader: CHECKED,
  outledger_operator: {
    ...CHECKED,
    endpoint: ['select', 'insert', 'update'],
    operation: ['select', 'insert'],
    queue: ['select'],
  },
}

const ENQUEUER = 'outledger_enqueuer'
const ROLES = [ENQUEUER, ...Object.keys(RIGHTS)]

/** They see every view there is when this is run; views have the rights of their owner. */
const VIEWERS = ['outledger_reader', 'outledger_operator']

const each = (find: string, statement: string): string => `do $grant$ declare found text; begin
  for found in ${find} loop
    execute ${statement};
  end loop;
end $grant$;`

/** All in one transaction: what a role needs it never lacks, and what an older version had given is taken back. */
export function grantsText(): string {
  const all = ROLES.join(', ')
  const tables = Object.entries(RIGHTS).flatMap(([role, rights]) =>
    Object.entries(rights).map(([table, of]) => `grant ${of.join(', ')} on outbox.${table} to ${role};`),
  )
  const lines = [
    '-- outledger: roles with the least rights on schema outbox. Run it again after each migration.',
    'begin;',
    each(
      `select r from unnest(array['${ROLES.join(`', '`)}']) r where not exists (select from pg_catalog.pg_roles where rolname = r)`,
      `format('create role %I nologin', found)`,
    ),
    `revoke all on schema outbox from ${all};`,
    `revoke all on all tables in schema outbox from ${all};`,
    `revoke all on all functions in schema outbox from ${all};`,
    `grant usage on schema outbox to ${all};`,
    ...tables,
    each(
      `select p.oid::regprocedure::text from pg_catalog.pg_proc p where p.pronamespace = 'outbox'::regnamespace and p.proname in ('enqueue', 'enqueue_many')`,
      `format('grant execute on function %s to ${ENQUEUER}', found)`,
    ),
    each(
      `select c.oid::regclass::text from pg_catalog.pg_class c where c.relnamespace = 'outbox'::regnamespace and c.relkind = 'v'`,
      `format('grant select on %s to ${VIEWERS.join(', ')}', found)`,
    ),
    'commit;',
  ]
  return lines.join('\n')
}

// What a person does to an endpoint: pause, resume, review, remove, rotate. Each is one guarded statement that also records itself.
import { type EndpointRow, endpointColumns, endpointOf, type StoredEndpoint } from './endpoint.ts'
import { type Executor, iso, type Value } from './executor.ts'

/** Is this endpoint paused because it waits for a review, and not by a person? */
export const pausedForReview = (e: string): string =>
  `coalesce(${e}.paused_reason = 'review: ' || ${e}.unreviewed, false)`

// The row is locked and read first, in its latest version; the update then finds it by its id and changes what the guard lets through.
const changing = (verb: string, set: string, guard: string) => `
with old as materialized (
  select e.* from outbox.endpoint e where e.name = $1 for update
), changed as (
  update outbox.endpoint e set ${set}, updated_at = clock_timestamp()
  where e.id = (select o.id from old o where o.removed_at is null and ${guard})
  returning e.*
), recorded as (
  insert into outbox.operation (who, verb, subject, why, detail)
  select $2, 'endpoint ${verb}', c.name, $3, json_build_object('old', (select row_to_json(o) from old o), 'new', row_to_json(c)) from changed c
)
select true as changed, ${endpointColumns} from changed e
union all
select false, ${endpointColumns} from old e where not exists (select from changed)`

// A pause of a person's own takes the place of one that waits for a review, so that the review does not end it.
const pauseText = changing(
  'pause',
  'paused_at = clock_timestamp(), paused_reason = $3',
  `(o.paused_at is null or ${pausedForReview('o')})`,
)

/** Nothing is held against it any more. */
const INNOCENT =
  'backoff_until = null, tripped_until = null, trip_ms = null, failures = 0, failing_since = null, rejections = 0'

const resumeText = changing(
  'resume',
  `paused_at = null, paused_reason = null, ${INNOCENT}`,
  '(o.paused_at is not null or o.tripped_until is not null or o.backoff_until > statement_timestamp()) and o.unreviewed is null',
)

const reviewText = changing(
  'review',
  `unreviewed = null, version = e.version + 1,
   paused_at = case when not ${pausedForReview('e')} then e.paused_at end,
   paused_reason = case when not ${pausedForReview('e')} then e.paused_reason end`,
  'o.unreviewed is not null and ($4::text is null or o.version = $4::text::int)',
)

// Nothing may keep its rows from ending. What waits for a review still does, should a put take the endpoint back.
const removeText = changing(
  'remove',
  `removed_at = clock_timestamp(), version = e.version + 1,
   paused_at = null, paused_reason = null, ${INNOCENT}`,
  'not exists (select from outbox.queue q where q.endpoint_id = o.id)',
)

const rotateText = changing(
  'rotate-secret',
  `secret_ref = $4, version = e.version + 1, previous_secrets = (
     select coalesce(json_agg(json_build_object('secret', p.secret, 'until', p.until) order by p.ord), '[]')
     from (select e.secret_ref as secret, 0::bigint as ord,
                  ${iso(`(clock_timestamp() + $5::text::bigint * interval '1 millisecond')`)} as until
           union all
           select k.value ->> 'secret', k.ord, k.value ->> 'until'
           from json_array_elements(e.previous_secrets) with ordinality k(value, ord)
           where k.value ->> 'secret' not in (e.secret_ref, $4) and (k.value ->> 'until')::timestamptz > statement_timestamp()) p
     where $5::text::bigint > 0)`,
  'o.secret_ref <> $4',
)

/** What became of it; `changed` false: it stood so already, or something is in the way, and nothing was written. */
export interface Changed {
  readonly changed: boolean
  readonly endpoint: EndpointRow
}

export interface Person {
  readonly by: string
  readonly why: string | null
}

/** Null: no endpoint has this name. */
async function change(db: Executor, text: string, values: readonly Value[]): Promise<Changed | null> {
  const [row] = await db.run<StoredEndpoint & { changed: boolean }>(text, values)
  if (row === undefined) return null
  const { changed, ...stored } = row
  return { changed, endpoint: endpointOf(stored) }
}

export const pause = (db: Executor, name: string, { by, why }: Person) => change(db, pauseText, [name, by, why])

export const resume = (db: Executor, name: string, { by, why }: Person) => change(db, resumeText, [name, by, why])

/** `version` null: whatever it is at. */
export const review = (
  db: Executor,
  name: string,
  { by, why, version }: Person & { readonly version: number | null },
) => change(db, reviewText, [name, by, why, version === null ? null : String(version)])

/** Changes nothing while any delivery is open. */
export const remove = (db: Executor, name: string, { by, why }: Person) => change(db, removeText, [name, by, why])

/** `keepMs` 0: no other secret than the new one is signed with any more. */
export const rotateSecret = (
  db: Executor,
  name: string,
  { by, why, secret, keepMs }: Person & { readonly secret: string; readonly keepMs: number },
) => change(db, rotateText, [name, by, why, secret, String(keepMs)])

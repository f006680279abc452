// To look at the outbox without touching it: one delivery, some, or how everything stands. Reads the public views only.
import { OutledgerError } from './errors.ts'
import { codeOf } from './events.ts'
import { LIST_OPTIONS } from './list-options.ts'
import { completeOptions, type Given } from './options.ts'
import { get as getRow, type Story, type Tombstone, tombstoneOf as tombstoneRow } from './sql/get.ts'
import { type Delivery, list as listRows, type Moment } from './sql/list.ts'
import { type EndpointStatus, type PollerStatus, type Status as StatusRow, status as statusRow } from './sql/status.ts'
import { anyExecutor, type Handle } from './transaction.ts'

export type ListFilter = Given<typeof LIST_OPTIONS>

/** One delivery with its attempts and what people did to it, or null. @throws OutledgerError `invalid_option` */
export async function get(db: Handle, key: string): Promise<Story | null> {
  return noText(key) ? null : getRow(anyExecutor(db), key)
}

/** What is left of a purged delivery, or null. */
export async function tombstoneOf(db: Handle, key: string): Promise<Tombstone | null> {
  return noText(key) ? null : tombstoneRow(anyExecutor(db), key)
}

/** Postgres has no text with this character, so no delivery has such a key. */
function noText(key: string): boolean {
  if (typeof key !== 'string')
    throw new OutledgerError(
      'invalid_option',
      `key is ${key === null ? 'null' : `a ${typeof key}`}; it must be a string`,
    )
  return key.includes('\0')
}

/**
 * Deliveries, newest first. States, certainties and reasons other than those of delivered ones are found without reading
 * history; a rare endpoint, type, ordering key or correlation id alone is looked for through all of it.
 *
 * @throws OutledgerError `invalid_option`
 */
export async function list(db: Handle, filter: ListFilter = {}): Promise<Delivery[]> {
  if (typeof filter !== 'object' || filter === null)
    throw new OutledgerError('invalid_option', 'the filter of list is no object; leave it out, or pass its options')
  const complete = completeOptions(LIST_OPTIONS, filter)
  for (const [name, value] of Object.entries(complete))
    if (typeof value === 'string' && value.includes('\0')) throw wrong(name, value, 'have no NUL character')
  const { since, until, before } = complete
  if (before !== null && !/^\d{1,18}$/.test(before)) throw wrong('before', before, 'be the id of a delivery')
  const moments = { since: momentOf('since', since), until: momentOf('until', until) }
  return listRows(anyExecutor(db), { ...complete, ...moments }).catch((error) => {
    // The calendar is the database's business: it knows that there is no 30 February.
    if (!BAD_TIME.has(codeOf(error))) throw error
    const said = String((error.cause ?? error).message)
    const [first, second] = Object.entries({ since, until }).filter(([, text]) => text !== null && !AGO.test(text))
    const [name, text] = (second?.[1] && said.includes(second[1]) ? second : first) ?? []
    throw wrong(name ?? '', text ?? '', 'be a time that exists')
  })
}

const BAD_TIME = new Set(['22007', '22008', '22009', '22015'])

// A text without a zone would mean another instant in every session.
const INSTANT = /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)? ?(Z|[+-]\d\d(:?\d\d)?)$/i
const AGO = /^\d{1,6} ?(s|min|h|d)$/

function momentOf(name: string, text: string | null): Moment | null {
  if (text === null) return null
  if (AGO.test(text)) return { ago: text }
  if (INSTANT.test(text)) return { at: text }
  throw wrong(
    name,
    text,
    'be so long ago, such as 90s, 15min, 2h or 3d, or a time with its zone, such as 2026-11-30T08:00Z',
  )
}

const wrong = (name: string, value: string, must: string) =>
  new OutledgerError('invalid_option', `option ${name} is ${JSON.stringify(value.slice(0, 100))}; it must ${must}`)

export interface Status extends StatusRow {
  /** What is wrong, in words; empty: nothing. */
  readonly trouble: readonly string[]
}

/** How everything stands at this moment, and what is wrong; counts of what a person must look at go up to 1000. */
export async function status(db: Handle): Promise<Status> {
  const row = await statusRow(anyExecutor(db))
  return { ...row, trouble: troubleOf(row) }
}

/** A delivery that has been due for so long at an open endpoint is more than a busy moment. */
const LATE_MS = 60_000

function troubleOf({ endpoints, pollers, dead, review }: StatusRow): string[] {
  const due = endpoints.reduce((sum, row) => sum + row.due, 0)
  const live = pollers.filter((poller) => poller.alive)
  const passed = review.kinds['key window passed'] ?? 0
  const doubtful = review.kinds['may have been applied'] ?? 0
  return [
    ...(live.length > 0
      ? []
      : [`no poller is alive${due > 0 ? `, and ${amount({ count: due }, 'delivery is', 'deliveries are')} due` : ''}`]),
    ...endpoints.flatMap((row) => troubleAt(row, live)),
    ...(dead.count > 0
      ? [
          `${amount(dead, 'delivery is', 'deliveries are')} dead${doubtful > 0 ? `; ${doubtful} may have been applied` : ''}`,
        ]
      : []),
    ...(passed > 0
      ? [
          `${amount({ count: passed }, 'delivery', 'deliveries')} may have been applied so long ago that the receiver has forgotten the key`,
        ]
      : []),
  ]
}

function troubleAt(
  { endpoint, state, due, leased, scheduled, parked, blocked, oldestDueMs }: EndpointStatus,
  live: readonly PollerStatus[],
): string[] {
  const open = due + leased + scheduled + parked + blocked
  const stopped = state !== 'open' && (state !== 'removed' || open > 0)
  const late = state === 'open' && live.length > 0 && (oldestDueMs ?? 0) > LATE_MS
  return [
    ...(stopped
      ? [
          `endpoint ${endpoint} ${state.startsWith('waits') ? '' : 'is '}${state}, with ${amount({ count: open }, 'delivery', 'deliveries')} open`,
        ]
      : []),
    ...(late
      ? [
          `endpoint ${endpoint} falls behind: ${amount({ count: due }, 'delivery is', 'deliveries are')} due, the oldest for ${Math.floor((oldestDueMs ?? 0) / 60_000)} min`,
        ]
      : []),
    ...(open > 0 && live.length > 0 && live.every(({ declines }) => declines.includes(endpoint))
      ? [`endpoint ${endpoint} has no poller that can send to it: a secret or a payload is missing, see their logs`]
      : []),
    ...(blocked > 0
      ? [
          `endpoint ${endpoint} has ${amount({ count: blocked }, 'ordering key', 'ordering keys')} blocked by a dead delivery`,
        ]
      : []),
  ]
}

const amount = ({ count, more }: { count: number; more?: boolean }, one: string, many: string) =>
  `${more ? 'more than ' : ''}${count} ${count === 1 ? one : many}`

// What a person does to an endpoint beside its settings: pause, resume, review, remove, rotate its secret.
import { checkWord } from './endpoint-check.ts'
import { REVIEW_OPTIONS, ROTATE_OPTIONS } from './endpoint-options.ts'
import { OutledgerError } from './errors.ts'
import { completeOptions } from './options.ts'
import { type By, type ByWhy, byline } from './person.ts'
import { type ResolveSecret, resolveSecret, signingSecret } from './secrets.ts'
import type { EndpointRow } from './sql/endpoint.ts'
import type { Changed, Person } from './sql/endpoint-change.ts'
import * as verbs from './sql/endpoint-change.ts'
import type { Executor } from './sql/executor.ts'
import { openCounts } from './sql/open.ts'
import { anyExecutor, type Handle } from './transaction.ts'

/**
 * Send nothing more to it until `resumeEndpoint`; requests in flight end as they do. Deliveries wait, none expires.
 *
 * @returns `changed` false when it was paused already
 * @throws OutledgerError `unknown_endpoint`
 */
export async function pauseEndpoint(db: Handle, name: string, given: ByWhy): Promise<Changed> {
  return done(anyExecutor(db), name, byline(given, { needsWhy: true }), verbs.pause)
}

/**
 * Send again.
 *
 * @returns `changed` false when it was not paused
 * @throws OutledgerError `endpoint_unreviewed` while a change waits for `reviewEndpoint`, `unknown_endpoint`
 */
export async function resumeEndpoint(db: Handle, name: string, given: By = {}): Promise<Changed> {
  const result = await done(anyExecutor(db), name, byline(given), verbs.resume)
  const { unreviewed } = result.endpoint
  if (unreviewed !== null)
    throw new OutledgerError(
      'endpoint_unreviewed',
      `endpoint ${name} has a change that nobody has reviewed (${unreviewed}); review it first: outledger endpoint review ${name} --why …`,
    )
  return result
}

export interface ReviewGiven extends ByWhy {
  /** The version that was looked at, as `showEndpoint` says it. */
  readonly version?: number | undefined
}

/**
 * Accept a changed host, region or processor: ends the pause that the change made; a person's own pause stays. With
 * `version` only what was looked at is accepted, and not what came after it.
 *
 * @returns `changed` false when nothing waited
 * @throws OutledgerError `endpoint_changed` when it is at another version than was looked at, `unknown_endpoint`
 */
export async function reviewEndpoint(db: Handle, name: string, given: ReviewGiven): Promise<Changed> {
  const { by, why, ...options } = given
  const { version } = completeOptions(REVIEW_OPTIONS, options)
  const review = (db: Executor, name: string, person: Person) => verbs.review(db, name, { ...person, version })
  const result = await done(anyExecutor(db), name, byline({ by, why }, { needsWhy: true }), review)
  const { unreviewed, version: found } = result.endpoint
  if (unreviewed !== null)
    throw new OutledgerError(
      'endpoint_changed',
      `endpoint ${name} is at version ${found} and not ${version}; look at what waits now (${unreviewed})`,
    )
  return result
}

/**
 * Retire it: enqueue refuses it from now on, its history stays, `putEndpoint` takes it back. A delivery whose transaction
 * was still open ends dead, `endpoint_removed`, without being sent.
 *
 * @returns `changed` false when it was removed already
 * @throws OutledgerError `endpoint_in_use` with the number of deliveries that are open, `unknown_endpoint`
 */
export async function removeEndpoint(db: Handle, name: string, given: By = {}): Promise<Changed> {
  const executor = anyExecutor(db)
  const person = byline(given)
  checkWord('name', name, 200)
  for (;;) {
    const result = known(name, await verbs.remove(executor, name, person))
    if (result.endpoint.removedAt !== null) return result
    const { total } = await openCounts(executor, result.endpoint.id)
    // None any more: the last one ended in between.
    if (total > 0)
      throw new OutledgerError(
        'endpoint_in_use',
        `endpoint ${name} has ${total} open ${total === 1 ? 'delivery' : 'deliveries'}; let ${total === 1 ? 'it' : 'them'} end, then remove it`,
      )
  }
}

export interface RotateGiven extends By {
  readonly secret: string
  readonly keepHours?: number
  readonly resolve?: ResolveSecret
}

/**
 * Sign with a new secret from now on, and for `keepHours` with the old one too, so that the receiver can change over
 * at a time of its own. The secrets of earlier rotations go on until their time, except with `keepHours` 0.
 *
 * @throws OutledgerError `secret_unresolvable`, `invalid_endpoint` when the reference names no secret or the current one, `unknown_endpoint`
 */
export async function rotateSecret(db: Handle, name: string, given: RotateGiven): Promise<EndpointRow> {
  const { resolve = resolveSecret, by, why, ...options } = given
  const { secret, keepHours } = completeOptions(ROTATE_OPTIONS, options)
  const person = byline({ by, why })
  await signingSecret(secret, resolve)
  const rotate = (db: Executor, name: string, person: Person) =>
    verbs.rotateSecret(db, name, { ...person, secret, keepMs: keepHours * 3_600_000 })
  const { changed, endpoint } = await done(anyExecutor(db), name, person, rotate)
  if (!changed)
    throw new OutledgerError(
      'invalid_endpoint',
      `secret reference ${JSON.stringify(secret)} is the current one of endpoint ${name}; store the new secret under another reference`,
    )
  return endpoint
}

type Verb = (db: Executor, name: string, person: Person) => Promise<Changed | null>

async function done(db: Executor, name: string, person: Person, verb: Verb): Promise<Changed> {
  checkWord('name', name, 200)
  const result = known(name, await verb(db, name, person))
  if (result.endpoint.removedAt !== null) throw unknown(name, 'was removed; put it again to take it back')
  return result
}

function known(name: string, result: Changed | null): Changed {
  if (result === null) throw unknown(name, 'does not exist; create it with "outledger endpoint put"')
  return result
}

const unknown = (name: string, what: string) =>
  new OutledgerError('unknown_endpoint', `endpoint ${JSON.stringify(name)} ${what}`)

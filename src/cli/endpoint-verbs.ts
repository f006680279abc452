// outledger endpoint pause | resume | review | remove | rotate-secret | test
import {
  pauseEndpoint,
  type ReviewGiven,
  type RotateGiven,
  removeEndpoint,
  resumeEndpoint,
  reviewEndpoint,
  rotateSecret,
} from '../operator.ts'
import type { By, ByWhy } from '../person.ts'
import { type Ping, type PingOptions, testEndpoint } from '../ping.ts'
import type { Changed } from '../sql/endpoint-change.ts'
import type { Executor } from '../sql/executor.ts'
import { withDatabase } from './database.ts'
import { answer, facts, harmless, instantText, type Screen } from './print.ts'
import { databaseUrl, type Parsed } from './usage.ts'
import { EXITS } from './verbs.ts'

/** A verb of one endpoint: the call, and its answer in words. */
const verb =
  <G, T>(
    call: (db: Executor, name: string, given: G) => Promise<T>,
    say: (result: T, name: string, screen: Screen) => string,
    exit: (result: T) => number = () => EXITS.done[0],
  ) =>
  async (parsed: Parsed, screen: Screen): Promise<number> => {
    const { subject: name, values } = parsed
    const result = await withDatabase(databaseUrl(parsed), (db) => call(db, name, values as G))
    answer(screen, parsed, result, () => say(result, name, screen))
    return exit(result)
  }

const standing = ({ endpoint }: Changed): string =>
  endpoint.pausedReason === null ? 'deliveries go out' : `paused: ${harmless(endpoint.pausedReason)}`

export const pause = verb<ByWhy, Changed>(
  pauseEndpoint,
  (result, name) => `endpoint ${name} ${result.changed ? '' : 'was already '}${standing(result)}`,
)

export const resume = verb<By, Changed>(
  resumeEndpoint,
  ({ changed }, name) => `endpoint ${name} ${changed ? 'resumed' : 'was not paused'}`,
)

export const review = verb<ReviewGiven, Changed>(
  reviewEndpoint,
  (result, name) =>
    `endpoint ${name}: ${result.changed ? 'reviewed' : 'nothing waited for a review'}, ${standing(result)}`,
)

export const remove = verb<By, Changed>(removeEndpoint, ({ changed, endpoint }, name) => {
  const since = instantText(endpoint.removedAt ?? '')
  return `endpoint ${name} ${changed ? 'removed' : `was removed already, at ${since}`}`
})

export const rotate = verb<RotateGiven, Awaited<ReturnType<typeof rotateSecret>>>(
  rotateSecret,
  ({ secret, previousSecrets }, name) =>
    [
      `endpoint ${name} signs with ${secret}`,
      ...previousSecrets.map((one) => `and with ${one.secret} until ${instantText(one.until)}`),
    ]
      .map(harmless)
      .join('\n'),
)

export const test = verb<PingOptions, Ping>(testEndpoint, pinged, ({ outcome }) =>
  outcome === 'delivered' ? EXITS.done[0] : EXITS.trouble[0],
)

function pinged(ping: Ping, name: string, screen: Screen): string {
  const { host, key, phases, phase, status, outcome, verdict, reason, tookMs } = ping
  return facts(screen, [
    ['endpoint', `${name} at ${host}`],
    ['key', key],
    ...Object.entries(phases).map(([entered, ms]): [string, string] => [entered, `${ms.toFixed(1)} ms`]),
    ['answer', `${status === null ? `none, ended in phase ${phase}` : `HTTP ${status}`} after ${tookMs} ms`],
    ['outcome', outcome],
    ['verdict', reason === null ? verdict : `${verdict}: ${reason}`],
  ])
}

// Rounds of a poller until nothing is due: deterministic, without waiting.
import { OutledgerError } from '../errors.ts'
import { completeOptions, type Given, type OptionTable } from '../options.ts'
import { databaseOf, Poller } from '../poller.ts'
import { hurry, survey } from '../sql/hurry.ts'

/** What `runOnce` counts, of all rounds together. */
export type Drained = { rounds: number } & Awaited<ReturnType<Poller['runOnce']>>

const DRAIN_OPTIONS = {
  retries: {
    type: 'boolean',
    default: false,
    doc: 'Five minutes pass at once: retries that wait are due, and endpoints that back off are open. Again and again, until all have ended',
  },
  scheduled: {
    type: 'boolean',
    default: false,
    doc: 'So are first attempts that delayMs or notBefore put off',
  },
  limit: { type: 'integer', default: 1_000, min: 1, max: 1_000_000, doc: 'Rounds before it gives up' },
} as const satisfies OptionTable

export type DrainOptions = Given<typeof DRAIN_OPTIONS>

/**
 * Run rounds until nothing is due. What waits for its time is not due, unless the options pull it near. The poller is one
 * that was created and not started, and the only one in its database.
 *
 * @throws OutledgerError `invalid_option`; `drain_unfinished` when this one was started, another poller is alive, or something is still due after `limit` rounds
 */
export async function drain(poller: Poller, options: DrainOptions = {}): Promise<Drained> {
  if (!(poller instanceof Poller))
    throw new OutledgerError('invalid_option', 'what is to be drained must be a poller of createPoller')
  const { retries, scheduled, limit } = completeOptions(DRAIN_OPTIONS, options)
  const db = databaseOf(poller)
  if (db === null) throw unfinished(`poller ${poller.name} was started and runs by itself; stop() it first`)
  const sum: Drained = { rounds: 0, claimed: 0, delivered: 0, retry: 0, dead: 0, block: 0, fenced: 0, released: 0 }
  while (sum.rounds < limit) {
    // Live pollers share the lanes: with another one about, what is due would be left to it without a word.
    const { others } = await survey(db, poller.name)
    if (others !== '')
      throw unfinished(`another poller is alive: ${others}; stop() it first, a test needs the deliveries to itself`)
    const round = await poller.runOnce()
    sum.rounds++
    for (const name of Object.keys(round) as (keyof typeof round)[]) sum[name] += round[name]
    if (round.claimed > 0) continue
    if ((await survey(db, poller.name)).due > 0) continue
    if (!(retries || scheduled) || (await hurry(db, { retries, scheduled })) === 0) return sum
  }
  throw unfinished(
    `something is still due after ${limit} rounds (${JSON.stringify(sum)}); make the receiver accept it, give the endpoint maxAttempts, or raise limit`,
  )
}

const unfinished = (what: string) => new OutledgerError('drain_unfinished', what)

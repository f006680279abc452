// outledger show KEY
import { OutledgerError } from '../errors.ts'
import { get, tombstoneOf } from '../look.ts'
import type { Attempt, Story, Tombstone } from '../sql/get.ts'
import type { Delivery } from '../sql/list.ts'
import { withDatabase } from './database.ts'
import { answer, type Colour, durationText, facts, harmless, instantText, paint, type Screen } from './print.ts'
import { databaseUrl, type Parsed } from './usage.ts'

export async function show(parsed: Parsed, screen: Screen): Promise<number> {
  const key = parsed.subject
  const story = await withDatabase(databaseUrl(parsed), async (db) => {
    const found = await get(db, key)
    if (found === null) throw unknown(key, await tombstoneOf(db, key))
    return found
  })
  answer(screen, parsed, story, () => storyText(screen, story))
  return 0
}

function unknown(key: string, left: Tombstone | null): OutledgerError {
  const name = key.slice(0, 255)
  if (left === null) return new OutledgerError('unknown_delivery', `no delivery has the key ${name}`)
  const attempts = `${left.attempts} attempt${left.attempts === 1 ? '' : 's'}`
  return new OutledgerError(
    'unknown_delivery',
    `the delivery with key ${name} was purged on ${instantText(left.deletedAt)}; it had ended on ${instantText(left.endedAt)}: ${left.ending} after ${attempts}, certainty ${left.certainty}; its key deduplicates until ${instantText(left.deleteAfter)}`,
  )
}

const STATE_COLOURS: Readonly<Record<string, Colour>> = {
  delivered: 'green',
  dead: 'red',
  blocked: 'red',
  cancelled: 'yellow',
}
const OUTCOME_COLOURS: Readonly<Record<string, Colour>> = { delivered: 'green', unknown: 'yellow', rejected: 'red' }

export const stateColour = ({ state }: Delivery): Colour | undefined => STATE_COLOURS[state]
/** May have been applied, and no answer is still to come. */
export const isDoubtful = ({ state, certainty }: Delivery): boolean => certainty === 'unknown' && state !== 'leased'

function storyText(screen: Screen, story: Story): string {
  const { delivery: d } = story
  const ending = d.terminalReason === null ? d.state : `${d.state}: ${d.terminalReason}`
  const doubt = isDoubtful(d) ? ' · may have been applied' : ''
  const last = d.whyNotYet === null ? [] : ['', `not delivered yet: ${paint(screen, 'yellow', harmless(d.whyNotYet))}`]
  return [
    `${paint(screen, 'bold', harmless(d.key))} · ${paint(screen, stateColour(d), ending)}${paint(screen, 'yellow', doubt)}`,
    '',
    facts(screen, [
      ['endpoint', `${d.endpoint} (class ${d.class})`],
      ['type', d.type],
      ['ordering key', d.orderingKey],
      ['correlation', d.correlationId],
      ['payload', payloadText(d)],
      ['certainty', d.certainty],
      ['replay of', d.replayOf],
      ['delete after', d.deleteAfter && instantText(d.deleteAfter)],
    ]),
    '',
    ...eventsOf(screen, story),
    ...last,
  ].join('\n')
}

function payloadText(d: Delivery): string {
  const parts = [
    d.erasedAt === null ? '' : 'erased',
    d.payloadRef === null ? '' : `at ${d.payloadRef}`,
    d.payloadBytes === null ? '' : `${d.payloadBytes} bytes`,
    d.payloadSha256 === null ? '' : `SHA-256 ${d.payloadSha256}`,
  ]
  return parts.filter(Boolean).join(', ')
}

interface Event {
  readonly at: string
  readonly text: string
  readonly colour?: Colour | undefined
  /** Shown dim, on a line of its own. */
  readonly detail?: string
}

function eventsOf(screen: Screen, { delivery: d, attempts, operations }: Story): string[] {
  const later = d.scheduledAt > d.discoveredAt ? `, for ${instantText(d.scheduledAt)}` : ''
  const events: Event[] = [
    { at: d.discoveredAt, text: `written by ${d.discoveredBy}${later}` },
    ...attempts.map(attemptEvent),
    ...operations.map(({ at, who, verb, why }) => ({ at, text: `${verb} by ${who}${why === null ? '' : `: ${why}`}` })),
    ...(d.erasedAt === null ? [] : [{ at: d.erasedAt, text: 'payload erased' }]),
    ...(d.endedAt === null ? [] : [{ at: d.endedAt, text: endText(d), colour: stateColour(d) }]),
  ]
  const ordered = events
    .map((event, i) => ({ ...event, i }))
    .sort((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : a.i - b.i))
  const start = Date.parse(d.discoveredAt)
  const offsets = ordered.map(({ at }) => `+${durationText(Math.max(0, Date.parse(at) - start))}`)
  const width = Math.max(...offsets.map((text) => text.length))
  return ordered.flatMap(({ at, text, colour, detail }, i) => {
    const when = `${instantText(at)}  ${(offsets[i] as string).padStart(width)}  `
    const line = paint(screen, 'dim', when) + paint(screen, colour, harmless(text))
    return detail === undefined ? [line] : [line, ' '.repeat(when.length) + paint(screen, 'dim', harmless(detail))]
  })
}

const endText = ({ state, terminalReason, certainty }: Delivery): string =>
  `ended ${state}${terminalReason === null ? '' : `: ${terminalReason}`}${state === 'delivered' ? '' : `, certainty ${certainty}`}`

function attemptEvent(a: Attempt): Event {
  const colour = OUTCOME_COLOURS[a.outcome]
  if (a.reason === 'worker_lost')
    return {
      at: a.startedAt,
      colour,
      text: `attempt ${a.number}: lost (${a.outcome} · ${a.verdict} · worker_lost)`,
      detail: `leased by ${a.poller}, which never wrote what happened; found after ${durationText(a.tookMs)}`,
    }
  const what = a.httpStatus === null ? (a.requestSent ? 'no answer' : 'nothing sent') : `HTTP ${a.httpStatus}`
  const words = [...new Set([a.outcome, a.verdict]), a.reason].filter((word) => word !== null).join(' · ')
  const detail = [
    a.targetHost,
    a.phase !== null && a.phase !== 'done' && `ended in phase ${a.phase}`,
    `took ${durationText(a.tookMs)}`,
    a.lagMs !== null && `lag ${durationText(a.lagMs)}`,
    a.retryAfterMs !== null && `Retry-After ${durationText(a.retryAfterMs)}`,
    a.replayed && 'answered from its record of the key',
    `by ${a.poller}`,
  ]
  return {
    at: a.startedAt,
    colour,
    text: `attempt ${a.number}: ${what} (${words})`,
    detail: detail.filter(Boolean).join(', '),
  }
}

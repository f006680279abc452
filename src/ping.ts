// One signed ping to an endpoint: the request of a delivery in every respect, but for its type and its ledger row.
import { randomUUID } from 'node:crypto'
import { Sender } from './attempt.ts'
import { type Finding, findingOf, type Phase } from './core/classify.ts'
import { checkWord } from './endpoint-check.ts'
import { OutledgerError } from './errors.ts'
import { headersOf } from './headers.ts'
import { POLLER_OPTIONS } from './options.ts'
import { type By, byline } from './person.ts'
import { type ResolveSecret, resolveSecret } from './secrets.ts'
import { endpointByName } from './sql/endpoint.ts'
import { clock } from './sql/open.ts'
import { recordOperation } from './sql/operation.ts'
import { targetOf } from './targets.ts'
import { anyExecutor, type Handle } from './transaction.ts'

/** Type of the event, by which a receiver can tell it. */
const PING_TYPE = 'outledger.ping'

/** How a ping went. */
export interface Ping extends Finding {
  readonly endpoint: string
  readonly key: string
  /** Host and port that were dialled. */
  readonly host: string
  readonly status: number | null
  /** How far it came. */
  readonly phase: Phase
  readonly tookMs: number
  /** Milliseconds in each phase that was entered, in their order. */
  readonly phases: Readonly<Partial<Record<Phase, number>>>
}

export interface PingOptions extends By {
  readonly resolve?: ResolveSecret
}

/**
 * Send one signed ping of type `outledger.ping`, also to an endpoint that is paused or waits for a review, and say what
 * a delivery would have made of the answer. It goes on record as an operation; it is no delivery.
 *
 * @throws OutledgerError `unknown_endpoint`, `secret_unresolvable`, `invalid_endpoint`
 */
export async function testEndpoint(
  db: Handle,
  name: string,
  { resolve = resolveSecret, ...given }: PingOptions = {},
): Promise<Ping> {
  checkWord('name', name, 200)
  const executor = anyExecutor(db)
  const { by, why } = byline(given)
  const endpoint = await endpointByName(executor, name)
  if (endpoint === null || endpoint.removedAt !== null)
    throw new OutledgerError(
      'unknown_endpoint',
      `endpoint ${JSON.stringify(name)} ${endpoint === null ? 'does not exist' : 'was removed'}`,
    )
  const target = await targetOf(endpoint, resolve)
  const { at, nowMs } = await clock(executor)
  const key = `ping-${randomUUID()}`
  const envelope = { key, type: PING_TYPE, number: 1, correlation_id: null, traceparent: null }
  const body = Buffer.from(JSON.stringify({ type: PING_TYPE, endpoint: name, at }))
  const entered: [phase: Phase, at: number][] = []
  const sender = new Sender((phase) => entered.push([phase, performance.now()]))
  try {
    const facts = await sender.send({
      url: target.url,
      headers: headersOf(envelope, target, body, nowMs),
      body,
      timeoutMs: endpoint.timeoutMs ?? POLLER_OPTIONS.timeoutMs.default,
      allowPrivate: endpoint.allowPrivate,
      capture: false,
    })
    const { status, phase, tookMs } = facts
    const ping = {
      ...findingOf(facts, target.policy),
      status,
      phase,
      tookMs,
      phases: durations(entered, target.url.protocol),
    }
    await recordOperation(executor, { who: by, verb: 'endpoint test', subject: name, why, detail: { key, ...ping } })
    return { endpoint: name, key, host: target.url.host, ...ping }
  } finally {
    await sender.close()
  }
}

/** From when each phase was entered to how long it lasted. */
function durations(all: readonly (readonly [Phase, number])[], protocol: string): Ping['phases'] {
  // What the socket does after the deadline is no longer of interest.
  const entered = all.slice(0, all.findIndex(([phase]) => phase === 'done') + 1)
  const lasted = entered.slice(0, -1).map(([phase, at], i) => [phase, (entered[i + 1]?.[1] ?? at) - at] as const)
  // Without TLS that phase is entered and left at once.
  const real = lasted.filter(([phase]) => phase !== 'tls' || protocol === 'https:')
  return Object.fromEntries(real.map(([phase, ms]) => [phase, Math.round(ms * 10) / 10]))
}

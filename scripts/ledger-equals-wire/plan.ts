// What the run consists of, as a pure function of its seed: endpoints, deliveries, and when the pollers are hit.
import type { EndpointGiven, Message } from '../../src/index.ts'
import { between, type Chance, oneOf } from './chance.ts'
import { attemptsOf } from './faults.ts'

export interface EndpointPlan {
  readonly name: string
  /** `closed`: nobody listens at first. `tls`: an https URL; some handshakes fail. */
  readonly peer: 'open' | 'closed' | 'tls'
  readonly settings: Omit<EndpointGiven, 'name' | 'url' | 'secret'>
  /** So many ordering keys; 0: no order. */
  readonly orderingKeys: number
}

const OPEN_ENDPOINTS = 12

/** Deadlines short enough for a fault to be over soon, long enough for most answers to arrive on a busy machine. */
const TIMEOUT_MS = [250, 500] as const

export function endpointsOf(chance: Chance): EndpointPlan[] {
  const common = { allowInsecure: true, allowPrivate: true, onDead: 'skip', maxDelayMs: 100 } as const
  const open = Array.from({ length: OPEN_ENDPOINTS }, (_, i): EndpointPlan => {
    const name = `open-${i + 1}`
    const draw = (word: string) => chance('endpoint', name, word)
    const partitions = oneOf(draw('partitions'), [1, 2, 4, 8])
    return {
      name,
      peer: 'open',
      orderingKeys: i % 3 === 0 ? between(draw('orderingKeys'), 20, 60) : 0,
      settings: {
        ...common,
        partitions,
        concurrency: partitions * between(draw('concurrency'), Math.ceil(8 / partitions), 16),
        timeoutMs: i % 4 === 0 ? null : between(draw('timeoutMs'), ...TIMEOUT_MS),
        retryDelayMs: between(draw('retryDelayMs'), 0, 30),
        backoffFactor: oneOf(draw('backoffFactor'), [1, 1.5, 2]),
        captureResponse: i % 2 === 0,
        statusPolicy: i % 4 === 1 ? '{"404":"retry","451":"retry","503":"retry"}' : null,
        on409: i % 4 === 2 ? 'dead' : 'retry',
        keyFormat: i % 4 === 3 ? 'sf-string' : 'bare',
      },
    }
  })
  const settings = { ...common, partitions: 4, concurrency: 16, timeoutMs: 500, retryDelayMs: 20 }
  return [
    ...open,
    { name: 'tls', peer: 'tls', orderingKeys: 0, settings },
    // Nothing is to be gained from knocking at a closed door more often.
    {
      name: 'closed',
      peer: 'closed',
      orderingKeys: 0,
      settings: { ...settings, retryDelayMs: 200, maxDelayMs: 1_000 },
    },
  ]
}

const FEW = 8
const WORDS = ['a', 'Zoë', '€ 18,42', '\\u0000', '𝄞', '\\"', '  ', '0123456789']

/** Where a 409 is the end, some end sooner than their script has it. */
const MARGIN = 1.05

/** Deliveries that come to at least so many attempts by their scripts alone. */
export function messagesOf(chance: Chance, endpoints: readonly EndpointPlan[], attempts: number): Message[] {
  const open = endpoints.filter(({ peer }) => peer !== 'closed')
  const few = endpoints.filter(({ peer }) => peer === 'closed').flatMap((endpoint) => Array(FEW).fill(endpoint))
  const messages: Message[] = []
  for (let scripted = 0; scripted < attempts * MARGIN; ) {
    const i = messages.length + 1
    const endpoint: EndpointPlan = few[messages.length] ?? oneOf(chance('whose', i), open)
    const key = `${endpoint.name}:${i}`
    const order = endpoint.orderingKeys && { orderingKey: `o-${between(chance('order', i), 1, endpoint.orderingKeys)}` }
    messages.push({ key, endpoint: endpoint.name, type: 'wire.tested', payload: payloadOf(chance, key), ...order })
    scripted += attemptsOf(chance, key)
  }
  return messages
}

/** JSON text with what other senders lose; most are small, some fill more than one segment, a few more than a socket takes at once. */
export function payloadOf(chance: Chance, key: string): string {
  const size = chance('size', key)
  const [from, to] = size < 0.9 ? [0, 600] : size < 0.98 ? [1_000, 20_000] : [64_000, 200_000]
  const word = oneOf(chance('word', key), WORDS)
  const times = Math.floor(between(chance('length', key), from, to) / Buffer.byteLength(word))
  return `{ "key": ${JSON.stringify(key)},  "cents": 1e2, "id": 9007199254740993, "id": 1, "note": "${word.repeat(times)}" }`
}

export interface Blow {
  /** When such a share of the deliveries has been enqueued. */
  readonly at: number
  /** SIGKILL, SIGTERM, a database connection that breaks, the closed endpoint opens. */
  readonly kind: 'kill' | 'end' | 'cut' | 'open'
  /** Which poller. */
  readonly who: number
}

/** Each kind at least once, and more often in a longer run. */
export function blowsOf(chance: Chance, pollers: number, attempts: number): Blow[] {
  const counts = { kill: attempts / 2_500, end: attempts / 2_500, cut: attempts / 500 }
  const blows = (Object.keys(counts) as (keyof typeof counts)[]).flatMap((kind) =>
    Array.from({ length: Math.max(1, Math.round(counts[kind])) }, (_, i): Blow => {
      const draw = (word: string) => chance('blow', kind, i, word)
      return { at: draw('at'), kind, who: between(draw('who'), 0, pollers - 1) }
    }),
  )
  return [...blows, { at: 0.3, kind: 'open' as const, who: 0 }].sort((a, b) => a.at - b.at)
}

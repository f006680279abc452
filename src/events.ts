// What a poller tells: log lines and metrics subscribe here and nowhere else. No payloads, secrets or URLs in any of them.
import { EventEmitter } from 'node:events'
import type { Outcome, Verdict } from './core/state.ts'

export interface AttemptEvent {
  readonly key: string
  readonly type: string
  readonly endpoint: string
  readonly class: string
  readonly number: number
  readonly outcome: Outcome
  readonly verdict: Verdict
  readonly reason: string | null
  readonly httpStatus: number | null
  readonly tookMs: number
  /** The receiver asked for a longer pause than the 24 h that it gets. */
  readonly retryAfterCapped: boolean
  readonly lagMs: number
  readonly correlationId: string | null
  /** Sent to see whether a tripped endpoint works again. */
  readonly probe: boolean
}

export interface EndpointStop {
  readonly endpoint: string
  readonly class: string
  readonly stop: 'paused' | 'tripped' | 'backing off'
  /** Of a pause. */
  readonly reason: string | null
  /** Null: until a person resumes it. */
  readonly forMs: number | null
}

/** Leases that were given back uncharged. */
export interface ReleasedEvent {
  readonly count: number
  readonly reason: string
  /** Until they are due again. */
  readonly delayMs: number
  /** Null where its settings could not be read. */
  readonly endpoint: string | null
  readonly class: string | null
  /** What to do, where a secret or a payload cannot be had here. */
  readonly problem: string | null
}

export interface PollerEvents {
  /** The poller has checked the schema and begins. */
  started: [{ name: string }]
  /** It has stopped, and everything is written. */
  stopped: [{ name: string }]
  /** A claim that leased something. */
  claimed: [{ count: number }]
  /** An attempt has ended; its outcome is about to be settled. */
  attempt: [AttemptEvent]
  /** Written: a delivery has ended without success, or blocks its ordering key. */
  'delivery.dead': [AttemptEvent & { endReason: string }]
  /** No more is sent to an endpoint: by a pause that a person ends, or for so long by its circuit or its own wish. */
  'endpoint.stopped': [EndpointStop]
  /** An endpoint that was tripped works again. */
  'endpoint.opened': [{ endpoint: string; class: string }]
  /** A settle found another token in its row and changed nothing; `late` says whether its evidence was kept. */
  fenced: [{ deliveryId: string; number: number; late: boolean }]
  /** Leases given back uncharged. */
  released: [ReleasedEvent]
  /** A sweep has run: heads promoted, pollers forgotten, lanes that nobody looks after. */
  swept: [{ promoted: number; forgotten: number; overdueLanes: number }]
  /** A purge has deleted something. */
  purged: [{ deliveries: number; batches: number; tombstonesExpired: number }]
  /** A statement failed and is tried again. */
  'database.trouble': [{ during: string; code: string; tries: number }]
  /** Something that should not happen did, and the loop went on. */
  trouble: [{ during: string; code: string }]
}

export class Events {
  readonly #emitter = new EventEmitter()

  on<E extends keyof PollerEvents>(event: E, listener: (...args: PollerEvents[E]) => unknown): void {
    const failed = (error: unknown) => {
      if (event !== 'trouble') this.emit('trouble', { during: `a listener of ${event}`, code: codeOf(error) })
    }
    // No async function: it would cost each event its turns of the loop.
    this.#emitter.on(event, (told) => {
      try {
        const result = listener(told)
        if (result instanceof Promise) result.catch(failed)
      } catch (error) {
        failed(error)
      }
    })
  }

  /** A listener that throws, or rejects later, is its own trouble: it must not lose an outcome, end a loop or end the process. */
  emit<E extends keyof PollerEvents>(event: E, ...args: PollerEvents[E]): void {
    this.#emitter.emit(event, ...args)
  }
}

/** Causes that are looked at: one may lead back to where it came from. */
const CAUSES = 10

/** Anybody can throw anything: what is no plain word may be what was read. */
const isWord = (text: unknown): text is string => typeof text === 'string' && /^[\w.:-]{1,64}$/.test(text)

/** A name for an error that is safe to log: a driver's message may carry parameters. Never throws, whatever was thrown. */
export function codeOf(error: unknown, causes = CAUSES): string {
  try {
    const { code, cause, name } = (error ?? {}) as { code?: unknown; cause?: unknown; name?: unknown }
    if (isWord(code)) return code
    if (cause !== undefined && cause !== error && causes > 0) return codeOf(cause, causes - 1)
    return isWord(name) ? name : 'unknown'
  } catch {
    return 'unknown'
  }
}

// One request and its answer: raw headers, byte counts, phases, and the one moment from which on it may have been applied.
import type { Dispatcher, Pool } from 'undici'
import { failedToDial, type Waiting } from './connector.ts'
import type { Facts, Phase } from './core/classify.ts'
import { beginning } from './core/excerpt.ts'
import { codeOfSocket, headOf, isKeyProblem, type ResponseHead } from './core/response-head.ts'

export interface WireRequest {
  readonly url: URL
  /** Names and values in turn. */
  readonly headers: string[]
  readonly body: Buffer
  /** One deadline from before connect to the last body byte. */
  readonly timeoutMs: number
  readonly allowPrivate: boolean
  /** Keep the beginning of the response body. */
  readonly capture: boolean
}

/** Facts, and what the ledger keeps beside them. */
export interface WireFacts extends Facts {
  readonly tookMs: number
  readonly bytesOut: number
  readonly bytesIn: number
  /** The beginning of the response body, where it was asked for. */
  readonly body: Buffer | null
}

/** Called whenever a request enters a phase. On a connection that is kept, the next request begins with `request`. */
export type OnPhase = (phase: Phase) => void

/** Read of a response body; the rest is destroyed. The head alone decides, the body only lets the connection be kept. */
const BODY_LIMIT_BYTES = 16_384

/** Answers that only announce one, such as a 102 a second: more are a flood, which would keep this process from everything else. */
const ANNOUNCED_LIMIT = 1_000

/** What a peer, or something on the way, does to a connection that is kept for too long. */
const CLOSED = new Set(['ECONNRESET', 'EPIPE', 'closed'])

/** undici's low-level handler: raw headers, no streams, no promises; this is the hot path. */
export class Exchange implements Dispatcher.DispatchHandler, Waiting {
  readonly #request: WireRequest
  readonly #pool: Pool
  readonly #done: (facts: WireFacts) => void
  readonly #onPhase: OnPhase | undefined
  readonly #started = performance.now()
  readonly deadline: number
  #abort: (() => void) | null = null
  #ended = false
  #unsentPhase: Phase | null = null
  #sent = false
  #announced = 0
  #head: ResponseHead | null = null
  #bytesIn = 0
  #body: Buffer | null = null

  constructor(request: WireRequest, pool: Pool, done: (facts: WireFacts) => void, onPhase: OnPhase | undefined) {
    this.#request = request
    this.#pool = pool
    this.#done = done
    this.#onPhase = onPhase
    this.deadline = this.#started + request.timeoutMs
  }

  begin(): void {
    const { url, headers, body } = this.#request
    this.#unsentPhase = null
    try {
      this.#pool.dispatch({ path: url.pathname + url.search, method: 'POST', headers, body }, this)
    } catch {
      this.finish('bad_config')
    }
  }

  enter(phase: Phase): void {
    if (this.#ended) return
    this.#unsentPhase = phase
    this.#onPhase?.(phase)
  }

  /** Nobody has begun a connection for it. Two endpoints of one origin may have a pool each, and rules of their own. */
  waitsIn(pool: Pool): boolean {
    return this.#unsentPhase === null && !this.#sent && this.#pool === pool
  }

  /** A socket is ready and the request is written next, in this very turn: from here on it may have been applied. */
  onConnect(abort: () => void): void {
    if (this.#ended) {
      abort()
      return
    }
    this.#abort = abort
    this.#sent = true
    this.#onPhase?.('request')
  }

  onHeaders(status: number, raw: Buffer[]): boolean {
    // 1xx only announces; the answer is still to come.
    if (status >= 100 && status < 200) {
      if (++this.#announced > ANNOUNCED_LIMIT) this.cut('protocol_error')
      return true
    }
    this.#onPhase?.('response')
    this.#head = headOf(status, raw, this.#request.url)
    // Another connection may end where this one did not (RFC 9110 §15.5.20), and the next attempt is to find out.
    if (status === 421) this.cut('misdirected')
    return true
  }

  onData(chunk: Buffer): boolean {
    if (this.#head?.problem) this.#body = beginning(this.#body, chunk, BODY_LIMIT_BYTES)
    else if (this.#request.capture) this.#body = beginning(this.#body, chunk)
    this.#bytesIn += chunk.length
    if (this.#bytesIn > BODY_LIMIT_BYTES) this.cut('body_limit')
    return true
  }

  onComplete(): void {
    this.finish(null)
  }

  onError(error: Error): void {
    const code = codeOfSocket(error)
    // A kept connection was found closed before anything was written: nothing has failed yet.
    if (!this.#ended && !this.#sent && CLOSED.has(code) && !failedToDial(error)) this.begin()
    else this.finish(code === 'closed' && this.#announced > 0 ? 'protocol_error' : code)
  }

  /** Nobody asked for an upgrade. */
  onUpgrade(_status: number, _headers: Buffer[] | string[] | null, socket: { destroy(): unknown }): void {
    socket.destroy()
    this.finish('protocol_error')
  }

  /** End it with `code` and take the connection down. */
  cut(code: string): void {
    this.finish(code)
    this.#abort?.()
  }

  finish(error: string | null): void {
    if (this.#ended) return
    this.#ended = true
    this.#onPhase?.('done')
    const head = this.#head
    // Refused here, before anything was dialled.
    const refused = error === 'bad_config' || error === 'blocked_address'
    const unsentPhase = refused ? 'prepare' : (this.#unsentPhase ?? 'connect')
    this.#done({
      phase: head !== null ? (error === null ? 'done' : 'response') : this.#sent ? 'request' : unsentPhase,
      requestSent: this.#sent,
      status: head === null ? null : head.status,
      error,
      replayed: head?.replayed ?? false,
      retryAfterMs: head?.retryAfterMs ?? null,
      movedTo: head?.movedTo ?? null,
      keyProblem: head?.problem === true && this.#body !== null && isKeyProblem(this.#body),
      tookMs: Math.round(performance.now() - this.#started),
      bytesOut: this.#sent ? this.#request.body.length : 0,
      bytesIn: Math.min(this.#bytesIn, BODY_LIMIT_BYTES),
      body: this.#request.capture ? this.#body : null,
    })
  }
}

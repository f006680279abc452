// One HTTP request becomes facts. No retries, no redirects, no interceptors: what is sent here is one attempt in the ledger.
import { buildConnector, type Dispatcher, Pool } from 'undici'
import { connector, type Waiting } from './connector.ts'
import type { Facts, Phase } from './core/classify.ts'
import { beginning } from './core/excerpt.ts'
import { codeOfSocket, headOf, isKeyProblem, type ResponseHead } from './core/response-head.ts'
import { Sockets } from './flood.ts'
import { anyLookup, publicLookup } from './public-lookup.ts'

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

/** Answers that only announce one: more are a flood, which would keep this process from everything else. */
const ANNOUNCED_LIMIT = 16

/** Deadlines are looked at so often: one timer for all requests, for a timer each costs a third of the throughput. */
const TICK_MS = 20

/** A connection that nobody waits for any more is given up after this; a request's own deadline may come sooner. */
const CONNECT_LIMIT_MS = 10_000

const poolKey = (origin: string, allowPrivate: boolean): string => `${origin} ${allowPrivate}`

export class Sender {
  readonly #pools = new Map<string, Pool>()
  readonly #exchanges = new Set<Exchange>()
  readonly #sockets = new Sockets()
  readonly #onPhase: OnPhase | undefined
  #ticker: NodeJS.Timeout | null = null

  constructor(onPhase?: OnPhase) {
    this.#onPhase = onPhase
  }

  send(request: WireRequest): Promise<WireFacts> {
    return new Promise((resolve) => {
      const done = (facts: WireFacts) => {
        this.#exchanges.delete(exchange)
        // Any connection of this pool may lead to where this one led (RFC 9110 §15.5.20): the next attempt gets another.
        if (facts.status === 421) this.#leave(request)
        resolve(facts)
      }
      const { url, headers, body, allowPrivate } = request
      const pool = this.#pool(url.origin, allowPrivate)
      const exchange = new Exchange(request, pool, done, this.#onPhase)
      this.#exchanges.add(exchange)
      this.#ticker ??= setInterval(() => this.#tick(), TICK_MS)
      try {
        pool.dispatch({ path: url.pathname + url.search, method: 'POST', headers, body }, exchange)
      } catch {
        exchange.finish('bad_config')
      }
    })
  }

  /** What is under way there ends as it would. */
  #leave({ url, allowPrivate }: WireRequest): void {
    const key = poolKey(url.origin, allowPrivate)
    const pool = this.#pools.get(key)
    this.#pools.delete(key)
    pool?.close().catch(() => {})
  }

  /** Ends every request now; each is settled by what had been sent. */
  abortAll(): void {
    for (const exchange of this.#exchanges) exchange.cut('shutdown')
  }

  async close(): Promise<void> {
    if (this.#ticker !== null) clearInterval(this.#ticker)
    await Promise.all([...this.#pools.values()].map((pool) => pool.destroy()))
  }

  #tick(): void {
    const now = performance.now()
    this.#sockets.look()
    // After a stall of this process timers come before sockets: an answer that has already arrived is read first.
    setImmediate(() => {
      for (const exchange of this.#exchanges) if (now >= exchange.deadline) exchange.cut('timeout')
    })
    if (this.#exchanges.size > 0 || this.#ticker === null) return
    clearInterval(this.#ticker)
    this.#ticker = null
  }

  #pool(origin: string, allowPrivate: boolean): Pool {
    const key = poolKey(origin, allowPrivate)
    const known = this.#pools.get(key)
    if (known !== undefined) return known
    const lookup = allowPrivate ? anyLookup : publicLookup
    const dialling = { timeout: CONNECT_LIMIT_MS, lookup } as buildConnector.BuildOptions
    // Our own deadline covers everything; undici's are per gap.
    const pool: Pool = new Pool(origin, {
      pipelining: 1,
      headersTimeout: 0,
      bodyTimeout: 0,
      connect: connector(buildConnector(dialling), () => this.#waiting(pool), {
        allowPrivate,
        onSocket: (socket) => this.#sockets.add(socket),
      }),
    })
    this.#pools.set(key, pool)
    return pool
  }

  /** The one that has just been dispatched, or one that found its kept connection closed. */
  #waiting(pool: Pool): Waiting | undefined {
    for (const exchange of this.#exchanges) if (exchange.waitsIn(pool)) return exchange
    return undefined
  }
}

/** undici's low-level handler: raw headers, no streams, no promises; this is the hot path. */
class Exchange implements Dispatcher.DispatchHandler, Waiting {
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
    this.finish(code === 'closed' && this.#announced > 0 ? 'protocol_error' : code)
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

// One HTTP request becomes facts. No retries, no redirects, no interceptors: what is sent here is one attempt in the ledger.
import { buildConnector, Pool } from 'undici'
import { connector, type Waiting } from './connector.ts'
import { Exchange, type OnPhase, type WireFacts, type WireRequest } from './exchange.ts'
import { Sockets } from './flood.ts'
import { anyLookup, publicLookup } from './public-lookup.ts'

/** Deadlines are looked at so often: one timer for all requests, for a timer each costs a third of the throughput. */
const TICK_MS = 20
const IDLE_TICK_MS = 1_000

/** A connection that nobody waits for any more is given up after this; a request's own deadline may come sooner. */
const CONNECT_LIMIT_MS = 10_000

const poolKey = (origin: string, allowPrivate: boolean): string => `${origin} ${allowPrivate}`

export class Sender {
  readonly #pools = new Map<string, Pool>()
  readonly #exchanges = new Set<Exchange>()
  readonly #sockets = new Sockets()
  readonly #onPhase: OnPhase | undefined
  #ticker: NodeJS.Timeout | undefined
  #tickMs: number | null = null

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
      const pool = this.#pool(request.url.origin, request.allowPrivate)
      const exchange = new Exchange(request, pool, done, this.#onPhase)
      this.#exchanges.add(exchange)
      this.#tickEvery(TICK_MS)
      exchange.begin()
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
    this.#tickEvery(null)
    await Promise.all([...this.#pools.values()].map((pool) => pool.destroy()))
  }

  #tick(): void {
    const now = performance.now()
    this.#sockets.look()
    // After a stall of this process timers come before sockets: an answer that has already arrived is read first.
    setImmediate(() => {
      for (const exchange of this.#exchanges) if (now >= exchange.deadline) exchange.cut('timeout')
    })
    // On a kept connection, too, bytes without end may come.
    if (this.#exchanges.size === 0) this.#tickEvery(this.#sockets.size > 0 ? IDLE_TICK_MS : null)
  }

  #tickEvery(ms: number | null): void {
    if (ms === this.#tickMs) return
    this.#tickMs = ms
    clearInterval(this.#ticker)
    if (ms !== null) this.#ticker = setInterval(() => this.#tick(), ms)
    if (ms === IDLE_TICK_MS) this.#ticker?.unref()
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

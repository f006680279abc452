// Names are resolved in turn. getaddrinfo holds a thread of a small pool that the whole process shares: one name whose server
// is silent, asked for by every request of its endpoint, would keep all others from being resolved (the database's too).
import { type LookupAddress, type LookupOptions, lookup as resolve } from 'node:dns'

/** libuv gives name resolution half of its threads (libuv, "Thread pool work scheduling"). */
const THREADS = Number(process.env.UV_THREADPOOL_SIZE) || 4
const AT_ONCE = Math.max(1, Math.floor((THREADS + 1) / 2))

/** A name that took so long is not let to the last thread until it has been faster. */
const SLOW_MS = 1_000

/** Where no thread comes free for so long, what waits for one is given up: a fault of ours, and not of the endpoint. */
const WAIT_MS = 1_000

const REMEMBERED = 10_000

type Answer = (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void

interface Asked {
  readonly options: LookupOptions
  readonly answers: Answer[]
}

export class Names {
  readonly #atOnce: number
  readonly #slowMs: number
  readonly #waitMs: number
  /** One lookup of a name answers all that ask for it meanwhile. */
  readonly #asked = new Map<string, Asked>()
  /** Of these, those that wait for a thread, in the order in which they were asked for. */
  readonly #waiting = new Set<string>()
  /** And those that hold one, each since then on the monotonic clock. */
  readonly #running = new Map<string, number>()
  readonly #slow = new Set<string>()
  /** While some wait; begun anew with each that ends. */
  #stuck: NodeJS.Timeout | undefined

  constructor({ atOnce = AT_ONCE, slowMs = SLOW_MS, waitMs = WAIT_MS } = {}) {
    this.#atOnce = atOnce
    this.#slowMs = slowMs
    this.#waitMs = waitMs
  }

  /** All addresses of a name; `dns_busy` where others hold every thread. */
  lookup(name: string, options: LookupOptions, answer: Answer): void {
    const known = this.#asked.get(name)
    if (known !== undefined) {
      known.answers.push(answer)
      return
    }
    this.#asked.set(name, { options, answers: [answer] })
    this.#waiting.add(name)
    this.#begin()
  }

  #begin(): void {
    for (const name of this.#waiting) {
      if (this.#running.size >= this.#atOnce) break
      if (this.#mayBegin(name)) this.#resolve(name)
    }
    if (this.#waiting.size > 0) this.#stuck ??= setTimeout(() => this.#giveUp(), this.#waitMs)
    else this.#calm()
  }

  #giveUp(): void {
    this.#calm()
    const error = Object.assign(new Error('other names hold every thread'), { code: 'dns_busy' })
    for (const name of [...this.#waiting]) this.#end(name, error, [])
  }

  #calm(): void {
    clearTimeout(this.#stuck)
    this.#stuck = undefined
  }

  #mayBegin(name: string): boolean {
    if (!this.#slow.has(name)) return true
    const since = performance.now() - this.#slowMs
    let slow = 0
    for (const [other, begunAt] of this.#running) if (begunAt <= since || this.#slow.has(other)) slow++
    return slow < Math.max(1, this.#atOnce - 1)
  }

  #resolve(name: string): void {
    const { options } = this.#asked.get(name) as Asked
    const begunAt = performance.now()
    this.#waiting.delete(name)
    this.#running.set(name, begunAt)
    resolve(name, { ...options, all: true }, (error, addresses) => {
      this.#running.delete(name)
      if (this.#slow.size >= REMEMBERED) this.#slow.clear()
      if (performance.now() - begunAt >= this.#slowMs) this.#slow.add(name)
      else this.#slow.delete(name)
      this.#calm()
      this.#end(name, error, addresses)
      this.#begin()
    })
  }

  #end(name: string, error: NodeJS.ErrnoException | null, addresses: LookupAddress[]): void {
    const { answers } = this.#asked.get(name) as Asked
    this.#asked.delete(name)
    this.#waiting.delete(name)
    for (const answer of answers) answer(error, addresses)
  }
}

// Names are resolved in turn. getaddrinfo holds a thread of a small pool that the whole process shares: one name whose server
// is silent, asked for by every request of its endpoint, would keep all others from being resolved (the database's too).
import { type LookupAddress, type LookupOptions, lookup as resolve } from 'node:dns'

/** libuv gives name resolution half of its threads (libuv, "Thread pool work scheduling"). */
const THREADS = Number(process.env.UV_THREADPOOL_SIZE) || 4
const AT_ONCE = Math.max(1, Math.floor((THREADS + 1) / 2))

/** A name that took so long is not let to the last thread until it has been faster. */
const SLOW_MS = 1_000

/** What cannot even begin for so long is a fault of ours, and not of the endpoint: nothing is charged. */
const WAIT_MS = 1_000

const REMEMBERED = 10_000

type Answer = (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void

interface Asked {
  readonly options: LookupOptions
  readonly answers: Answer[]
  /** While it waits for its turn. */
  readonly timer: NodeJS.Timeout
  /** On the monotonic clock. */
  begunAt: number | null
}

export class Names {
  readonly #atOnce: number
  readonly #slowMs: number
  readonly #waitMs: number
  /** In the order in which they were asked for first; one lookup of a name answers all. */
  readonly #asked = new Map<string, Asked>()
  readonly #slow = new Set<string>()

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
    const timer = setTimeout(() => this.#end(name, asked, busy(), []), this.#waitMs)
    const asked: Asked = { options, answers: [answer], timer, begunAt: null }
    this.#asked.set(name, asked)
    this.#begin()
  }

  #begin(): void {
    for (const [name, asked] of this.#asked)
      if (asked.begunAt === null && this.#mayBegin(name)) this.#resolve(name, asked)
  }

  #mayBegin(name: string): boolean {
    const now = performance.now()
    const running = [...this.#asked].filter(([, { begunAt }]) => begunAt !== null)
    if (running.length >= this.#atOnce) return false
    if (!this.#slow.has(name)) return true
    const slow = running.filter(
      ([other, { begunAt }]) => this.#slow.has(other) || now - (begunAt ?? now) >= this.#slowMs,
    )
    return slow.length < Math.max(1, this.#atOnce - 1)
  }

  #resolve(name: string, asked: Asked): void {
    clearTimeout(asked.timer)
    const begunAt = performance.now()
    asked.begunAt = begunAt
    resolve(name, { ...asked.options, all: true }, (error, addresses) => {
      if (this.#slow.size >= REMEMBERED) this.#slow.clear()
      if (performance.now() - begunAt >= this.#slowMs) this.#slow.add(name)
      else this.#slow.delete(name)
      this.#end(name, asked, error, addresses)
    })
  }

  #end(name: string, { answers }: Asked, error: NodeJS.ErrnoException | null, addresses: LookupAddress[]): void {
    this.#asked.delete(name)
    for (const answer of answers) answer(error, addresses)
    this.#begin()
  }
}

const busy = () => Object.assign(new Error('other names hold every thread'), { code: 'dns_busy' })

// What the demo shows: lines that stay, and on a terminal one line that is rewritten.
import type { Progress } from './figures.ts'

/** Longest silence where progress cannot be rewritten. */
const PLAIN_INTERVAL_MS = 1_000

export class Screen {
  readonly #silent: boolean
  readonly #terminal = process.stdout.isTTY === true
  #shownAt = Number.NEGATIVE_INFINITY
  #rewriting = false

  constructor({ silent }: { silent: boolean }) {
    this.#silent = silent
  }

  line(text = ''): void {
    if (this.#silent) return
    this.clear()
    process.stdout.write(`${text}\n`)
  }

  /** Something that happened while the demo ran. */
  event(text: string): void {
    this.line(`${clock()}${text}`)
  }

  progress({ committed, delivered, open, effects }: Progress): void {
    if (this.#silent) return
    const figures = Object.entries({ committed, delivered, open, effects })
    const text = clock() + figures.map(([name, n]) => `${name} ${String(n).padStart(3)}`).join('   ')
    if (this.#terminal) {
      process.stdout.write(`\r\x1b[2K${text}`)
      this.#rewriting = true
    } else if (performance.now() - this.#shownAt >= PLAIN_INTERVAL_MS) {
      this.#shownAt = performance.now()
      this.line(text)
    }
  }

  /** Take the rewritten line away. */
  clear(): void {
    if (this.#rewriting) process.stdout.write('\r\x1b[2K')
    this.#rewriting = false
  }
}

/** Since the start of this process. */
const clock = (): string => `  ${String(Math.floor(performance.now() / 1000)).padStart(2)} s  `

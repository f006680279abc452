// Deliveries that may have ended their process are tried alone: the process is emptied for one of them, and afterwards the
// others have as long as it took. Alone means that a crash can be charged to nobody else: nothing else is leased here,
// and every outcome is written.
import type { Suspect } from './sql/suspects.ts'

/** Looked up at a time. */
export const SUSPECTS_LIMIT = 100

export class Suspects {
  #ids: readonly string[] = []
  #running = false
  /** On this process's monotonic clock: since when the process has been emptied; null: it is not. */
  #since: number | null = null
  #restUntil = Number.NEGATIVE_INFINITY
  /** What became of the others since the last turn: nothing, looked for, or claimed. A short turn leaves them no time for that. */
  #others: 'forgotten' | 'looked for' | 'claimed' = 'claimed'

  /** Those that this poller may try now; the next look brings them again while they are there. */
  learn(suspects: readonly Suspect[], mayTake: (suspect: Suspect) => boolean): void {
    if (this.#others === 'forgotten') this.#others = 'looked for'
    this.#ids = suspects.filter(mayTake).map(({ delivery_id }) => delivery_id)
  }

  get waiting(): boolean {
    return this.#ids.length > 0
  }

  /** One of them is in flight, or its outcome is not written yet. */
  get running(): boolean {
    return this.#running
  }

  /** Shall nothing more be claimed until one of them has had its turn? */
  mayEmpty(now: number): boolean {
    const shall = this.waiting && now >= this.#restUntil && this.#others === 'claimed'
    this.#since = shall ? (this.#since ?? now) : null
    return shall
  }

  /** Empty now: those to claim one of. */
  begin(now: number): readonly string[] {
    this.#since ??= now
    this.#running = true
    const ids = this.#ids
    this.#ids = []
    return ids
  }

  /** Of the others was claimed what there was room for. */
  othersClaimed(): void {
    if (this.#others === 'looked for') this.#others = 'claimed'
  }

  /** Its turn is over. */
  end(now: number): void {
    this.#running = false
    this.#others = 'forgotten'
    this.#restUntil = now + (now - (this.#since ?? now))
    this.#since = null
  }

  /** Milliseconds until the others have had their time; Infinity when nothing waits for that. */
  restMs(now: number): number {
    return this.waiting ? Math.max(0, this.#restUntil - now) : Number.POSITIVE_INFINITY
  }
}

// Waiting for a condition, with an overall deadline: the only way a test waits.
import { setTimeout as pause } from 'node:timers/promises'

type Truthy<T> = Exclude<T, false | 0 | '' | null | undefined>

/** Resolves with the first truthy answer of `look`; fails with `what` when there is none in time. */
export async function until<T>(what: string, look: () => T | Promise<T>, withinMs = 30_000): Promise<Truthy<T>> {
  for (const end = performance.now() + withinMs; ; await pause(20)) {
    const answer = await look()
    if (answer) return answer as Truthy<T>
    if (performance.now() > end) throw new Error(`not within ${withinMs} ms: ${what}`)
  }
}

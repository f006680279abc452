// The only loop: rhythm, jitter, abort; and p-retry around the database, the one thing that is tried again at once.
import pRetry from 'p-retry'
import { codeOf } from './events.ts'

/** SQLSTATE classes of what is wrong with the values sent (22, 23) or inside the server (XX): no time cures them. */
const REFUSED = /^(22|23|XX)...$/

/** Faults of a program have codes too. */
const FAULT = /^ERR_(INVALID|MISSING|UNKNOWN|OUT_OF)_/

/**
 * Is this trouble that waiting may end? Everything of the database and its connection, but a refusal of the values: an
 * observed outcome is too dear to be dropped because of a code that was not on a list.
 */
export function isPassing(error: unknown): boolean {
  const { code } = (error ?? {}) as { code?: unknown }
  return typeof code === 'string' && !REFUSED.test(code) && !FAULT.test(code)
}

export interface PersistOptions {
  readonly signal: AbortSignal
  /** Called before each further try. */
  readonly onTrouble: (code: string, tries: number) => void
}

/** Run `work` until the database lets it through or the signal aborts: 50 ms, doubled up to 2 s, with jitter. */
export async function persist<T>(work: () => Promise<T>, { signal, onTrouble }: PersistOptions): Promise<T> {
  // What the database has answered counts, even if the signal came meanwhile: p-retry would throw a claim's leases away.
  const answer: T[] = []
  try {
    await pRetry(async () => answer.push(await work()), {
      retries: Number.POSITIVE_INFINITY,
      minTimeout: 50,
      maxTimeout: 2_000,
      factor: 2,
      randomize: true,
      signal,
      shouldRetry: ({ error }) => isPassing(error),
      onFailedAttempt: ({ error, attemptNumber }) => {
        if (isPassing(error)) onTrouble(codeOf(error), attemptNumber)
      },
    })
  } catch (error) {
    if (answer.length === 0) throw error
  }
  return answer[0] as T
}

export interface Loop {
  /** Run the next round within `ms` instead of at the end of the pause. */
  wake(ms: number): void
  /** Resolves when the loop has ended, after the abort. */
  readonly ended: Promise<void>
}

/**
 * Call `once` again and again until the signal aborts. It answers how many milliseconds to pause.
 * A round that throws does not end the loop: it is reported and the next one comes after `pauseMs`.
 */
export function loop(
  once: () => Promise<number>,
  { signal, onTrouble, pauseMs }: { signal: AbortSignal; onTrouble: (error: unknown) => void; pauseMs: number },
): Loop {
  let timer: NodeJS.Timeout | undefined
  let due = 0
  let resume = () => {}
  const arm = (ms: number) => {
    clearTimeout(timer)
    due = performance.now() + ms
    timer = setTimeout(resume, Math.min(ms, 2 ** 31 - 1))
  }
  /** A wake-up that comes during a round counts for the pause after it. */
  let wanted = Number.POSITIVE_INFINITY
  let pausing = false
  const wake = (ms: number) => {
    if (!pausing) wanted = Math.min(wanted, ms)
    else if (performance.now() + ms < due) arm(ms)
  }
  const onAbort = () => wake(0)
  signal.addEventListener('abort', onAbort)
  const pause = (ms: number) =>
    new Promise<void>((resolve) => {
      resume = resolve
      pausing = true
      arm(ms)
    })
  const run = async () => {
    while (!signal.aborted) {
      wanted = Number.POSITIVE_INFINITY
      const ms = await once().catch((error) => {
        if (!signal.aborted) onTrouble(error)
        return pauseMs
      })
      if (!signal.aborted) await pause(Math.min(ms, wanted))
      pausing = false
    }
    signal.removeEventListener('abort', onAbort)
  }
  return { wake, ended: run() }
}

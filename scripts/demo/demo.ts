// One run from first line to exit: databases and processes come, the play runs, the tables are asked, everything goes.
import { setTimeout as pause } from 'node:timers/promises'
import type { DemoOptions } from './arguments.ts'
import { Crew } from './crew.ts'
import { createDatabases } from './databases.ts'
import { Ledgers } from './figures.ts'
import { POLLERS, play } from './play.ts'
import { failure, further, intro, STORY_KEY, story, table, title, verdict } from './report.ts'
import { Screen } from './screen.ts'

/** What is not delivered by then is reported as open: the demo ends within 30 s. */
const LIMIT_MS = 26_000

const SETTLE_LIMIT_MS = 3_000

/** @returns did every committed event take effect exactly once, and nothing else? */
export async function demo(options: DemoOptions, interrupted: AbortSignal): Promise<boolean> {
  const { keep, json, transactions } = options
  const screen = new Screen({ silent: json })
  screen.line(title(transactions))
  const databases = await createDatabases(options.server, { outlive: keep })
  const ledgers = new Ledgers(databases)
  const crew = new Crew()
  const over = new AbortController()
  const limit = setTimeout(() => over.abort(), LIMIT_MS - performance.now())
  let playing: Promise<void> | undefined
  let stays = false
  try {
    interrupted.throwIfAborted()
    for (const line of intro(databases.server, options.keyCheck)) screen.line(line)
    const signal = AbortSignal.any([interrupted, over.signal])
    playing = play({ ...options, databases, ledgers, crew, screen, signal })
    await Promise.race([playing, crew.failed, ended(interrupted)])
    await crew.stop(POLLERS)
    const figures = await ledgers.figures()
    const attempts = await ledgers.attemptsOf(STORY_KEY)
    interrupted.throwIfAborted()
    stays = keep
    const wrong = failure(figures, transactions)
    const lines = [...table(figures), ...story(attempts), ...further(databases, keep), verdict(wrong)]
    for (const line of lines) screen.line(line)
    const { app: database_url, receiver: receiver_database_url, removal } = databases
    const whereabouts = keep ? { database_url, receiver_database_url, removal } : {}
    if (json) console.log(JSON.stringify({ ok: wrong === null, ...figures, ...whereabouts }))
    return wrong === null
  } finally {
    screen.clear()
    clearTimeout(limit)
    over.abort()
    await crew.stop()
    // What still runs comes to its end before its database goes; a query on a lost connection may never do so.
    await Promise.race([playing?.catch(() => {}), pause(SETTLE_LIMIT_MS)])
    await ledgers.close()
    if (!stays) await databases.end()
  }
}

/** Rejects when the signal aborts. */
function ended(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
}

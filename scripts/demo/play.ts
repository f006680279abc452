// What happens on the stage: the processes start, the app works, one poller is killed, until all is delivered.
import { randomBytes } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { migrate } from '../../src/index.ts'
import { prepareApp, runApp } from './app.ts'
import type { Crew } from './crew.ts'
import type { Databases } from './databases.ts'
import type { Ledgers } from './figures.ts'
import { transactions } from './input.ts'
import type { Screen } from './screen.ts'
import { POLLER_FLAGS, RETRY_DELAY_MS } from './settings.ts'
import { together } from './together.ts'

export const POLLERS = ['poller-1', 'poller-2'] as const
const VICTIM = 'poller-1'

/** The kill comes when such a share of the transactions has run, and the victim has so many deliveries under a lease. */
const KILL_AT_SHARE = 0.3
const KILL_AT_LEASES = 3

/** After so many looks, one lease is enough: on a fast machine few requests are ever in flight. */
const MODEST_AFTER_LOOKS = 100

const PROGRESS_INTERVAL_MS = 200
const LEASES_INTERVAL_MS = 10

/** The endpoints' rows say `env:` and this name; the value is made anew for each run. */
const SECRET = 'OUTLEDGER_DEMO_SECRET'

export interface Stage {
  readonly databases: Databases
  readonly ledgers: Ledgers
  readonly crew: Crew
  readonly screen: Screen
  /** Aborts when the demo is interrupted or its time is up. */
  readonly signal: AbortSignal
  readonly keyCheck: boolean
  readonly transactions: number
}

/** Resolves when everything that was committed has been delivered, or when the time is up. */
export async function play(stage: Stage): Promise<void> {
  const { databases, signal } = stage
  process.env[SECRET] = `whsec_${randomBytes(32).toString('base64')}`
  const [url] = await together(signal, () => [startReceiver(stage), migrate(databases.app)])
  await prepareApp(databases.app, { url, secret: `env:${SECRET}`, retryDelayMs: RETRY_DELAY_MS })
  await together(signal, () => POLLERS.map((name) => startPoller(stage, name)))
  const acts = { committing: true, delivering: true }
  await together(signal, (signal) => {
    const now = { ...stage, signal }
    return [commitAll(now, acts), deliverAll(now, acts), killInMidFlight(now, acts)]
  })
}

/** How far the play is; each act sets its own to false at its end. */
interface Acts {
  committing: boolean
  delivering: boolean
}

async function commitAll({ databases, transactions: count, signal }: Stage, acts: Acts): Promise<void> {
  await runApp(transactions(count), { url: databases.app, signal })
  acts.committing = false
}

/** Show where things stand, until all is committed and nothing is open. */
async function deliverAll({ ledgers, screen, signal }: Stage, acts: Acts): Promise<void> {
  try {
    while (!signal.aborted) {
      const { committing } = acts
      const progress = await ledgers.progress()
      screen.progress(progress)
      if (!committing && progress.open === 0) break
      await pause(PROGRESS_INTERVAL_MS)
    }
  } finally {
    acts.delivering = false
  }
}

/** @returns where it listens */
async function startReceiver({ crew, databases, keyCheck }: Stage): Promise<string> {
  const [, port] = await crew.start('receiver', {
    file: fileURLToPath(new URL('./receiver.ts', import.meta.url)),
    env: {
      RECEIVER_DATABASE_URL: databases.receiver,
      RECEIVER_SECRET: process.env[SECRET] as string,
      RECEIVER_KEY_CHECK: keyCheck ? 'on' : 'off',
    },
    ready: /listening on port (\d+)\./,
  })
  return `http://127.0.0.1:${port}`
}

async function startPoller({ crew, databases }: Stage, name: string): Promise<void> {
  await crew.start(name, {
    file: fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url)),
    args: ['work', '--name', name, ...POLLER_FLAGS],
    env: { DATABASE_URL: databases.app },
    ready: /poller started/,
  })
}

async function killInMidFlight(stage: Stage, acts: Acts): Promise<void> {
  const { ledgers, crew, screen } = stage
  while (acts.delivering) {
    const { committed } = await ledgers.progress()
    if (committed >= KILL_AT_SHARE * stage.transactions) break
    await pause(PROGRESS_INTERVAL_MS)
  }
  for (let looks = 0; acts.delivering; looks++) {
    const wanted = looks < MODEST_AFTER_LOOKS ? KILL_AT_LEASES : 1
    if ((await ledgers.leasesOf(VICTIM)) < wanted) {
      await pause(LEASES_INTERVAL_MS)
      continue
    }
    await crew.kill(VICTIM)
    const leases = await ledgers.leasesOf(VICTIM)
    screen.event(`${VICTIM} killed with SIGKILL, ${leases} of its deliveries under a lease`)
    await startPoller(stage, VICTIM)
    screen.event(`${VICTIM} started again`)
    // It may have settled everything in its last moment: then that was no kill in mid-flight.
    if (leases > 0) return
  }
}

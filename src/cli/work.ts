// outledger work
import { pino } from 'pino'
import { logTo } from '../log.ts'
import { type Complete, completeOptions, POLLER_OPTIONS } from '../options.ts'
import { createPoller } from '../poller.ts'
import { databaseUrl, helpOf, parse } from './usage.ts'

const LOG = {
  logLevel: {
    type: 'string',
    default: 'info',
    oneOf: ['debug', 'info', 'warn', 'error', 'silent'],
    doc: 'debug shows deliveries too, warn only trouble',
  },
} as const
const { databaseUrl: _, ...OPTIONS } = { ...POLLER_OPTIONS, ...LOG }

/** Ended by a person who would not wait. */
const KILLED = 130

export async function work(args: string[]): Promise<number> {
  const parsed = parse(args, OPTIONS)
  if (parsed.help) {
    console.log(
      helpOf('outledger work [options]: deliver until SIGTERM or SIGINT; a second signal ends at once', OPTIONS),
    )
    return 0
  }
  const { logLevel, ...given } = parsed.values
  const log: Complete<typeof LOG> = completeOptions(LOG, logLevel === undefined ? {} : { logLevel })
  const poller = createPoller({ ...given, databaseUrl: databaseUrl(parsed) })
  logTo(poller, pino({ level: log.logLevel }, pino.destination({ fd: 1, sync: true })))
  const signalled = new Promise<void>((resolve) => {
    let signals = 0
    const onSignal = () => {
      signals++
      if (signals > 1) process.exit(KILLED)
      resolve()
    }
    process.on('SIGTERM', onSignal)
    process.on('SIGINT', onSignal)
  })
  try {
    const started = poller.start()
    // A signal while the database is still silent is a stop, and what start says afterwards is of no interest.
    started.catch(() => {})
    await Promise.race([started, signalled])
    await signalled
  } finally {
    await poller.stop()
  }
  // All is written; a connection into a black hole that the driver has given up would hold the process for minutes.
  process.exit(0)
}

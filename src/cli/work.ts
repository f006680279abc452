// outledger work
import { pino } from 'pino'
import { logTo } from '../log.ts'
import { completeOptions } from '../options.ts'
import { createPoller } from '../poller.ts'
import { loaderAt } from './load-payload.ts'
import { databaseUrl, type Parsed } from './usage.ts'
import { EXITS, LOG_OPTIONS } from './verbs.ts'

export async function work(parsed: Parsed): Promise<number> {
  const { logLevel, loadPayload, ...given } = parsed.values
  const log = completeOptions(LOG_OPTIONS, logLevel === undefined ? {} : { logLevel })
  const url = databaseUrl(parsed)
  const load = typeof loadPayload === 'string' ? await loaderAt(loadPayload) : undefined
  const poller = createPoller({ ...given, databaseUrl: url, loadPayload: load })
  logTo(poller, pino({ level: log.logLevel }, pino.destination({ fd: 1, sync: true })))
  const signalled = new Promise<void>((resolve) => {
    let signals = 0
    const onSignal = () => {
      signals++
      if (signals > 1) process.exit(EXITS.killed[0])
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

// npm start: argv → one run of the demo → exit code. Whatever ends it, nothing stays running.
import { codeOf } from '../../src/events.ts'
import { HELP, readArguments, UsageError } from './arguments.ts'
import { demo } from './demo.ts'

/** 128 + the number of SIGINT, as shells have it. */
const INTERRUPTED = 130

/** How soon the end of the shell that npm started is noticed: SIGTERM to npm ends that shell and goes no further. */
const PARENT_INTERVAL_MS = 250

const interrupted = new AbortController()
let thrown: Error | null = null
process.on('uncaughtException', (error) => {
  // postgres.js throws one when a connection is lost in the middle of a transaction; even then everything is taken down.
  thrown ??= error
  interrupted.abort()
})
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => interrupted.abort())
// `npm start | head`: nobody reads on.
process.stdout.on('error', () => interrupted.abort())
if (process.env.npm_lifecycle_event === 'start') {
  const parent = process.ppid
  setInterval(() => process.ppid !== parent && interrupted.abort(), PARENT_INTERVAL_MS).unref()
}

async function main(): Promise<number> {
  try {
    const options = readArguments(process.argv.slice(2), process.env)
    if (options.help) {
      console.log(HELP)
      return 0
    }
    const passed = await demo(options, interrupted.signal)
    return passed && thrown === null ? 0 : 1
  } catch (error) {
    if (thrown === null && interrupted.signal.aborted) return INTERRUPTED
    console.error(`demo: ${textOf(thrown ?? (error as Error))}`)
    return error instanceof UsageError ? 2 : 1
  }
}

/** Of a database error only the code: the driver's message may carry parameters, or be empty. */
function textOf(error: Error): string {
  return error.message === '' || /Postgres|Drizzle/.test(error.name) ? `failed with ${codeOf(error)}` : error.message
}

process.exit(await main())

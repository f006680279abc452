// The real command line in a process of its own: a verb that ends, or `outledger work` until it is told to end.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { extname } from 'node:path'
import { createInterface } from 'node:readline'
import { after } from 'node:test'
import { fileURLToPath } from 'node:url'
import { testSecret } from './secret.ts'
import { until } from './until.ts'

/**
 * Arguments of node for a module of ours, its path without the extension: built, if these tests are. A process that need not
 * transpile itself is there in a third of the time.
 */
export function program(path: string): string[] {
  const file = fileURLToPath(new URL(`../../${path}${extname(import.meta.url)}`, import.meta.url))
  return file.endsWith('.ts') ? ['--import', 'tsx', file] : [file]
}

export type Flags = Readonly<Record<string, string | number>>

/** Rhythms for tests that wait until a lease has run out. */
export const QUICK: Flags = {
  'lease-ms': 2_500,
  'timeout-ms': 2_000,
  'settle-budget-ms': 300,
  'heartbeat-ms': 200,
  'poll-interval-ms': 50,
  'sweep-interval-ms': 200,
}

const flagged = (flags: Flags): string[] => Object.entries(flags).map(([name, value]) => `--${name}=${value}`)

/** Notes in the process itself how long its end takes, from the first signal to its last breath; it does not outlive us. */
const STOPWATCH = `
import { writeSync } from 'node:fs'
let since
process.on('disconnect', () => process.exit(99))
process.channel.unref()
process.once('SIGTERM', () => { since = performance.now() })
process.on('exit', () => { if (since) writeSync(2, '{"endedAfterMs":' + (performance.now() - since) + '}\\n') })`

function outledger(args: readonly string[], env: Record<string, string>, folder?: string): ChildProcess {
  const { DATABASE_URL: _, ...inherited } = process.env
  const main = folder === undefined ? program('src/cli/main') : ['--import', 'tsx', 'src/cli/main.ts']
  const stopwatch = ['--import', `data:text/javascript,${encodeURIComponent(STOPWATCH)}`]
  const child = spawn(process.execPath, [...stopwatch, ...main, ...args], {
    env: { ...inherited, ...env },
    cwd: folder,
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  })
  after(() => child.kill('SIGKILL'))
  return child
}

export interface Ended {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

/** Run a verb to its end; `folder` has another version of the sources. */
export async function runCli(
  args: readonly string[],
  env: Record<string, string> = {},
  folder?: string,
): Promise<Ended> {
  const child = outledger(args, env, folder)
  let [stdout, stderr] = ['', '']
  child.stdout?.on('data', (chunk) => {
    stdout += chunk
  })
  child.stderr?.on('data', (chunk) => {
    stderr += chunk
  })
  const [code, signal] = await once(child, 'close')
  return { code, signal, stdout, stderr }
}

export interface Worker {
  readonly pid: number
  /** Lines of its log, parsed. */
  readonly log: Record<string, unknown>[]
  /** What it wrote to stderr: nothing, unless something is wrong. */
  readonly complaints: string[]
  /** How long it took from the first SIGTERM to its exit, by its own clock. */
  endedAfterMs(): number | null
  kill(signal: NodeJS.Signals): void
  /** Resolves when it is gone and all it wrote has been read. */
  readonly ended: Promise<Pick<Ended, 'code' | 'signal'>>
}

/** `outledger work` as a process; resolves when its log says that it has started. */
export async function startWorker(db: { readonly url: string }, flags: Flags = {}, folder?: string): Promise<Worker> {
  testSecret()
  const child = outledger(['work', ...flagged(flags)], { DATABASE_URL: db.url }, folder)
  const log: Record<string, unknown>[] = []
  const errors: string[] = []
  if (child.stdout) createInterface(child.stdout).on('line', (line) => log.push(JSON.parse(line)))
  if (child.stderr) createInterface(child.stderr).on('line', (line) => errors.push(line))
  const ended = once(child, 'close').then(([code, signal]) => ({ code, signal }))
  const timed = (line: string) => line.startsWith('{"endedAfterMs":')
  const worker: Worker = {
    pid: child.pid as number,
    log,
    get complaints() {
      return errors.filter((line) => !timed(line))
    },
    endedAfterMs: () => JSON.parse(errors.find(timed) ?? 'null')?.endedAfterMs ?? null,
    kill: (signal) => child.kill(signal),
    ended,
  }
  await until('the worker has started', () => {
    if (child.exitCode !== null) throw new Error(`the worker ended with ${child.exitCode}: ${errors.join('\n')}`)
    return log.some((line) => line.msg === 'poller started')
  })
  return worker
}

// The demo's other processes: started, killed and stopped by their handle, never outliving the demo.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { extname } from 'node:path'

const EXTENSION = extname(import.meta.url)
const LEASH = import.meta.resolve('./leash.ts').replace(/\.ts$/, EXTENSION)
/** Built files need no loader. */
const IMPORTS = [...(EXTENSION === '.ts' ? [import.meta.resolve('tsx')] : []), LEASH].flatMap((url) => [
  '--import',
  url,
])

/** How long a process may take to stop before it is killed. */
const STOP_LIMIT_MS = 4_000

/** Enough of what a process said last to tell why it ended. */
const KEPT_CHARACTERS = 4_000

export interface Job {
  readonly file: string
  readonly args?: readonly string[]
  readonly env: Readonly<Record<string, string>>
  /** What it prints when it is ready. */
  readonly ready: RegExp
}

export class Crew {
  readonly #running = new Map<string, ChildProcess>()
  readonly #asked = new Set<ChildProcess>()
  #closed = false
  #fail: (error: Error) => void = () => {}
  /** Rejects when a process ends that nobody asked to. */
  readonly failed: Promise<never>

  constructor() {
    this.failed = new Promise<never>((_, reject) => {
      this.#fail = reject
    })
    this.failed.catch(() => {})
  }

  /** Start a process; resolves with what it said when it was ready. */
  async start(name: string, { file, args = [], env, ready }: Job): Promise<RegExpExecArray> {
    if (this.#closed) throw new Error(`${name} is not started: the demo is ending`)
    const child = spawn(process.execPath, [...IMPORTS, file.replace(/\.ts$/, EXTENSION), ...args], {
      stdio: ['pipe', 'pipe', 'pipe'],
      env: { ...process.env, ...env },
    })
    this.#running.set(name, child)
    let said = ''
    return new Promise((resolve, reject) => {
      const listen = (chunk: Buffer) => {
        said = (said + chunk).slice(-KEPT_CHARACTERS)
        const match = ready.exec(said)
        if (match !== null) resolve(match)
      }
      child.stdout.on('data', listen)
      child.stderr.on('data', listen)
      // Its end shows as an exit; a write into its closed stdin never happens.
      child.stdin.on('error', () => {})
      child.on('error', reject)
      // A process that was asked to end has nothing more to say that matters.
      child.once('exit', () => this.#asked.has(child) && reject(new Error(`${name} was ended`)))
      child.once('close', (code, signal) => {
        const error = new Error(`${name} ended with ${signal ?? `exit code ${code}`}: ${lastLine(said)}`)
        reject(error)
        if (!this.#asked.has(child)) this.#fail(error)
      })
    })
  }

  /** SIGKILL, in the middle of whatever it does. */
  async kill(name: string): Promise<void> {
    const child = this.#take(name)
    const exited = once(child, 'exit')
    child.kill('SIGKILL')
    await exited
  }

  /** SIGTERM to those of these names that run; resolves when they have ended. Without names all, and for good. */
  async stop(names?: readonly string[]): Promise<void> {
    this.#closed ||= names === undefined
    await Promise.all(
      (names ?? [...this.#running.keys()])
        .filter((name) => this.#running.has(name))
        .map((name) => this.#stop(this.#take(name))),
    )
  }

  async #stop(child: ChildProcess): Promise<void> {
    if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return
    const exited = once(child, 'exit')
    child.kill('SIGTERM')
    const limit = setTimeout(() => child.kill('SIGKILL'), STOP_LIMIT_MS)
    await exited
    clearTimeout(limit)
  }

  #take(name: string): ChildProcess {
    const child = this.#running.get(name)
    if (child === undefined) throw new Error(`${name} does not run`)
    this.#running.delete(name)
    this.#asked.add(child)
    return child
  }
}

const lastLine = (text: string): string => text.trim().split('\n').at(-1) || 'it said nothing'

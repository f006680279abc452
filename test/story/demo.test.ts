// The demo as a stranger runs it: in a process of its own, judged by its exit code and by what it says and leaves.
import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { chmodSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import postgres from 'postgres'
import { program } from '../support/process.ts'
import { until } from '../support/until.ts'

const SERVER = process.env.OUTLEDGER_TEST_SERVER ?? ''

const folder = mkdtempSync(join(tmpdir(), 'outledger-demo-test-'))
// An embedded server started by root runs as another user.
chmodSync(folder, 0o755)
after(() => rmSync(folder, { recursive: true, force: true }))

/** Its processes from the build: each would transpile itself otherwise. */
function start(args: string[], env: Record<string, string> = {}) {
  const temp = mkdtempSync(join(folder, 'run-'))
  const mark = randomUUID()
  chmodSync(temp, 0o755)
  const child = spawn(process.execPath, [...program('scripts/demo/main'), ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, TMPDIR: temp, OUTLEDGER_DEMO_MARK: mark, ...env },
  })
  const said = { stdout: '', stderr: '' }
  child.stderr.on('data', (chunk) => {
    said.stderr += chunk
  })
  const ended = once(child, 'close').then(([code]) => ({ code, ...said }))
  /** Resolves when stdout has it, or has ended. */
  const says = (text: string) =>
    new Promise<void>((resolve) => {
      child.stdout.on('data', () => said.stdout.includes(text) && resolve())
      child.stdout.on('end', resolve)
    })
  child.stdout.on('data', (chunk) => {
    said.stdout += chunk
  })
  return { child, ended, says, leftovers: () => [...filesIn(temp), ...processesOf(temp, mark)] }
}

/** The cache of the TypeScript loader is not the demo's. */
const filesIn = (temp: string): string[] => readdirSync(temp).filter((name) => name.startsWith('outledger'))

/** Processes with the mark in their environment, or that work in the temp folder: Postgres overwrites its environment, not its folder. */
function processesOf(temp: string, mark: string): string[] {
  if (process.platform !== 'linux') return []
  return readdirSync('/proc').filter((pid) => {
    try {
      const environment = readFileSync(`/proc/${pid}/environ`, 'utf8')
      return environment.includes(mark) || readlinkSync(`/proc/${pid}/cwd`).startsWith(temp)
    } catch {
      return false
    }
  })
}

interface Summary {
  readonly committed: number
  readonly rolled_back: number
  readonly effects: number
  readonly lost: number
  readonly phantoms: number
  readonly retried: number
  readonly unknown: number
  readonly worker_lost: number
  readonly duplicates_absorbed: number
  readonly database_url: string
  readonly receiver_database_url: string
  readonly removal: string
}

const demoDatabases = () => ask(SERVER, "select datname from pg_database where datname like 'outledger\\_demo\\_%'")
const before = await demoDatabases()
const whole = start(['--json', '--transactions', '200'], { DATABASE_URL: SERVER })
// One after the other: each has a limit of time of its own.
const unplugged = whole.ended.then(() =>
  start(['--json', '--without-key-check', '--keep', '--transactions', '200'], { DATABASE_URL: '' }),
)

test('the demo brings every committed event to one effect, through faults and a kill, and leaves nothing', async () => {
  const { code, stdout, stderr } = await whole.ended
  assert.equal(stderr, '')
  const summary: Summary = JSON.parse(stdout)
  assert.equal(summary.committed, 180)
  assert.equal(summary.rolled_back, 20)
  assert.equal(summary.effects, 180)
  assert.equal(summary.lost, 0)
  assert.equal(summary.phantoms, 0)
  for (const name of ['retried', 'unknown', 'worker_lost', 'duplicates_absorbed'] as const)
    assert.ok(summary[name] > 0, `${name} in ${stdout}`)
  assert.equal(code, 0, stdout)
  assert.deepEqual(whole.leftovers(), [])
  assert.deepEqual(await demoDatabases(), before)
})

test('without the key check of the receiver repetitions take effect, and the demo fails', async () => {
  const { code, stdout, stderr } = await (await unplugged).ended
  assert.equal(stderr, '')
  const summary: Summary = JSON.parse(stdout)
  assert.equal(summary.committed, 180)
  assert.ok(summary.effects > 180, stdout)
  assert.equal(summary.lost, 0)
  assert.equal(summary.duplicates_absorbed, 0)
  assert.equal(code, 1)
})

test('with --keep the databases stay and say what the summary said, until the printed command removes them', async () => {
  const summary: Summary = JSON.parse((await (await unplugged).ended).stdout)
  const { database_url: app, receiver_database_url: receiver, removal } = summary
  assert.deepEqual(await ask(app, 'select count(*)::int as n from shop.business'), [{ n: summary.committed }])
  assert.deepEqual(await ask(app, 'select count(*)::int as n from outbox.deliveries'), [{ n: summary.committed }])
  assert.deepEqual(await ask(receiver, 'select count(*)::int as n from effect'), [{ n: summary.effects }])
  execFileSync('sh', ['-c', removal])
  // Told to shut down, Postgres still takes its moment.
  const { leftovers } = await unplugged
  await until('nothing is left', () => leftovers().length === 0)
})

test('an interrupted demo takes everything down with it', async () => {
  const { child, ended, says, leftovers } = start([], { DATABASE_URL: '' })
  await says('shortened to')
  child.kill('SIGINT')
  const { code, stderr } = await ended
  assert.equal(stderr, '')
  assert.equal(code, 130)
  assert.deepEqual(leftovers(), [])
})

test('an unknown option is one line and exit code 2', async () => {
  const { code, stdout, stderr } = await start(['--kep']).ended
  assert.equal(stderr, 'demo: unknown option --kep; did you mean "--keep"?\n')
  assert.equal(stdout, '')
  assert.equal(code, 2)
})

async function ask(url: string, question: string): Promise<object[]> {
  const sql = postgres(url, { max: 1 })
  try {
    return [...(await sql.unsafe(question))]
  } finally {
    await sql.end({ timeout: 1 })
  }
}

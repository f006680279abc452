// This tree against another one, run in turn (ABBA), each with a database of its own schema: what the machine does meanwhile
// meets both alike, and the ratio says more than either rate.
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import postgres from 'postgres'
import type { Measured, Pids } from './cpu.ts'
import { deliver } from './deliver.ts'
import { extractTree } from './tree.ts'

export interface PairedOptions {
  /** The other commit. */
  readonly against: string
  readonly pairs: number
  readonly server: string
  readonly url: URL
  readonly payload: string
  readonly count: number
  readonly pids: Pids
  readonly say: (text: string) => void
}

/** Of this tree to that of the other. */
export interface Comparison {
  readonly ratioOfMedians: number
  readonly lowestPair: number
  readonly highestPair: number
}

export interface Paired {
  /** More is better. */
  readonly rate: Comparison
  /** Processor time of poller and Postgres for one delivery; less is better. Null where /proc does not tell. */
  readonly cpu: Comparison | null
}

export async function paired(options: PairedOptions): Promise<Paired> {
  const { against, pairs, say } = options
  const folder = mkdtempSync(join(tmpdir(), 'outledger-bench-'))
  try {
    extractTree(against, folder)
    const [here, there]: [Measured[], Measured[]] = [[], []]
    for (let pair = 0; pair < pairs; pair++) {
      const both = [
        async () => here.push(await measured(options, process.cwd())),
        async () => there.push(await measured(options, folder)),
      ]
      for (const one of pair % 2 === 0 ? both : both.reverse()) await one()
      say(`pair ${pair + 1}   this tree ${line(here.at(-1))}   ${against} ${line(there.at(-1))}`)
    }
    return {
      rate: compared(here, there, ({ perSecond }) => perSecond),
      cpu: here[0]?.cpuMicros ? compared(here, there, cpuOf) : null,
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Migrated and configured by the command line of that very tree. */
async function measured({ server, url, payload, count, pids }: PairedOptions, folder: string): Promise<Measured> {
  const admin = postgres(server, { max: 1, onnotice: () => {} })
  const name = 'outledger_bench'
  await admin.unsafe(`create database ${name}`)
  const databaseUrl = Object.assign(new URL(server), { pathname: `/${name}` }).href
  const outledger = (...args: string[]) =>
    execFileSync(process.execPath, ['--import', 'tsx', 'src/cli/main.ts', ...args], {
      cwd: folder,
      env: { ...process.env, DATABASE_URL: databaseUrl },
      stdio: ['ignore', 'ignore', 'inherit'],
    })
  const sql = postgres(databaseUrl, { onnotice: () => {} })
  try {
    outledger('migrate')
    const local = ['--secret', 'env:BENCH_SECRET', '--allow-insecure', '--allow-private']
    outledger('endpoint', 'put', 'bench', '--url', url.href, ...local)
    return await deliver({ sql, databaseUrl, payload, count, pids, folder })
  } finally {
    await sql.end({ timeout: 1 })
    await admin.unsafe(`drop database ${name} with (force)`)
    await admin.end({ timeout: 1 })
  }
}

function compared(here: readonly Measured[], there: readonly Measured[], of: (one: Measured) => number): Comparison {
  const [a, b] = [here.map(of), there.map(of)]
  const ratios = a.map((value, i) => value / (b[i] ?? 0))
  return {
    ratioOfMedians: median(a) / median(b),
    lowestPair: Math.min(...ratios),
    highestPair: Math.max(...ratios),
  }
}

const cpuOf = ({ cpuMicros }: Measured): number => (cpuMicros?.poller ?? 0) + (cpuMicros?.postgres ?? 0)

function line(one: Measured | undefined): string {
  return `${String(one?.perSecond).padStart(6)}/s${one?.cpuMicros ? `, ${cpuOf(one)} µs` : ''}`
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const half = Math.floor(sorted.length / 2)
  const upper = sorted[half] ?? 0
  return sorted.length % 2 === 1 ? upper : (upper + (sorted[half - 1] ?? 0)) / 2
}

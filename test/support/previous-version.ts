// The sources as they were before the newest migration: what still runs while a deploy is under way.
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after } from 'node:test'
import { extractTree } from '../../scripts/bench/tree.ts'

const git = (...args: string[]) => execFileSync('git', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })

export interface Previous {
  readonly folder: string
  /** How many migrations it has. */
  readonly migrations: number
}

/** Null where there is no history to take it from: a tarball, a shallow clone. */
export function previousVersion(): Previous | null {
  let commit: string
  try {
    const newest = git('log', '--diff-filter=A', '--format=%H', '-1', '--', 'drizzle/*.sql').trim()
    commit = git('rev-parse', '--verify', `${newest}^`).trim()
  } catch {
    return null
  }
  const folder = mkdtempSync(join(tmpdir(), 'outledger-previous-'))
  after(() => rmSync(folder, { recursive: true, force: true }))
  extractTree(commit, folder)
  return { folder, migrations: readdirSync(join(folder, 'drizzle')).filter((name) => name.endsWith('.sql')).length }
}

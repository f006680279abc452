// Blocks of README.md as files that can be compiled and run: `outledger` is this source, everything else is installed.
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after } from 'node:test'
import { type Block, blocksOf } from './manual.ts'

export const ROOT = `${process.cwd()}/`

export const sourced = (text: string): string =>
  text.replace(
    /(from|import\() *'outledger(?:\/(\w+))?'/g,
    (_all, how, entry = 'index') => `${how} '${ROOT}src/${entry}.ts'`,
  )

/** Below node_modules, where the packages resolve and no other tool looks. */
export function snippetFolder(name: string): string {
  const folder = join(ROOT, 'node_modules', `.manual-${name}-${process.pid}`)
  mkdirSync(folder, { recursive: true })
  after(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** Written under its own name, or one after its line in README.md; `.mts` for the compiler. */
export function writeBlock(folder: string, { file, line, text }: Block, extension?: string): string {
  const name = file ?? `line-${line}.mts`
  const path = join(folder, extension === undefined ? name : name.replace(/\.mjs$/, extension))
  writeFileSync(path, sourced(text))
  return path
}

/** How each block of TypeScript is run: none is left out. */
export function wayOf(block: Block): 'story' | 'tests' | 'prisma' | 'here' {
  if (block === blocksOf('ts')[0] || block.file?.endsWith('.mjs')) return 'story'
  if (block.text.includes(`'node:test'`)) return 'tests'
  return block.text.includes('PrismaClient') ? 'prisma' : 'here'
}

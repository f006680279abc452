// The project's own files as text, for the rules that no compiler holds. TypeScript 7 has no API to ask instead.
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, posix } from 'node:path'

const ROOT = process.cwd()
const NOT_OURS = new Set(['node_modules', '.git', 'dist', 'coverage'])

/** Paths of all files below a folder, relative to the root, with slashes. */
export const filesBelow = (folder: string): string[] =>
  readdirSync(join(ROOT, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = posix.join(folder, entry.name)
    if (NOT_OURS.has(entry.name)) return []
    return entry.isDirectory() ? filesBelow(path) : entry.isFile() ? [path] : []
  })

export const textOf = (path: string) => readFileSync(join(ROOT, path), 'utf8')

// A slash pair inside a string or a pattern stands behind a colon, a quote or a backslash, never behind a blank.
const withoutComments = (text: string) => text.replace(/\/\*[\s\S]*?\*\//g, '').replace(/(^|\s)\/\/.*$/gm, '$1')

export interface SourceFile {
  /** Relative to src, scripts or test: `core/state.ts`. */
  readonly name: string
  readonly path: string
  readonly text: string
  /** Without comments. */
  readonly code: string
  readonly imports: readonly { readonly from: string; readonly names: string }[]
}

const NAMES = /(?:\w+|\*(?: as \w+)?|\{[^}]*\})(?:,\s*\{[^}]*\})?/.source
const IMPORT = new RegExp(`^(?:import|export)\\s+(?:type\\s+)?(?:(${NAMES})\\s+from\\s+)?'([^']+)'`, 'gm')
const DYNAMIC = /\bimport\(\s*['"`]([^'"`]+)/g

export function fileAt(path: string): SourceFile {
  const text = textOf(path)
  const code = withoutComments(text)
  const imports = [
    ...[...code.matchAll(IMPORT)].map(([, names = '', from = '']) => ({ from, names })),
    ...[...code.matchAll(DYNAMIC)].map(([, from = '']) => ({ from, names: '*' })),
  ].map(({ from, names }) => ({ names, from: from.startsWith('.') ? posix.join(dirname(path), from) : from }))
  return { path, name: path.slice(path.indexOf('/') + 1), text, code, imports }
}

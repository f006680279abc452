import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MOVES } from '../src/core/state.ts'
import { ERRORS } from '../src/errors.ts'
import { fileAt, filesBelow, type SourceFile, textOf } from './support/source.ts'

const typescript = (folder: string) =>
  filesBelow(folder)
    .filter((path) => path.endsWith('.ts'))
    .map(fileAt)
const src = typescript('src')
const core = src.filter(({ name }) => name.startsWith('core/'))
const everywhere = [...src, ...typescript('scripts'), ...typescript('test')]

/** What breaks a rule, each with its file; a rule that looked at nothing has not held. */
function broken(files: readonly SourceFile[], rule: (file: SourceFile) => readonly string[]): string[] {
  assert.ok(files.length > 0)
  return files.flatMap((file) => rule(file).map((what) => `${file.path}: ${what}`))
}

const matches = (text: string, pattern: RegExp) => [...text.matchAll(pattern)].map(([match]) => match.trim())

const LOW = [
  'attempt',
  'connector',
  'exchange',
  'flood',
  'interim',
  'names',
  'public-lookup',
  'loop',
  'options',
  'endpoint-options',
  'list-options',
  'errors',
  'events',
  'version',
]

/** The storey of a file in src, and those that it may import from. */
function storeyOf(path: string): 'top' | 'testing' | 'cli' | 'noun' | 'low' | 'sql' | 'core' {
  const [, first = '', second] = path.split('/')
  if (first === 'testing' || first === 'testing.ts') return 'testing'
  if (second !== undefined) return first === 'cli' || first === 'sql' || first === 'core' ? first : 'noun'
  return first === 'index.ts' ? 'top' : LOW.includes(first.replace('.ts', '')) ? 'low' : 'noun'
}

const MAY_IMPORT: Record<ReturnType<typeof storeyOf>, readonly string[]> = {
  top: ['noun', 'low', 'sql', 'core'],
  testing: ['testing', 'noun', 'low', 'sql', 'core'],
  cli: ['cli', 'noun', 'low', 'sql', 'core'],
  noun: ['noun', 'low', 'sql', 'core'],
  low: ['low', 'core'],
  sql: ['sql', 'core'],
  core: ['core'],
}

test('imports go down: index, testing and cli, nouns, then attempt, loop, options, errors, events and sql, then core', () => {
  const rule = ({ path, imports }: SourceFile) =>
    imports
      .filter(({ from }) => from.startsWith('src/'))
      .filter(({ from }) => !MAY_IMPORT[storeyOf(path)].includes(storeyOf(from)))
      // What is wrong is said in the same words everywhere, and errors.ts itself imports nothing.
      .filter(({ from }) => !(storeyOf(path) === 'sql' && from === 'src/errors.ts'))
      .map(({ from }) => `imports ${from}`)
  assert.deepEqual(broken(src, rule), [])
  assert.deepEqual(fileAt('src/errors.ts').imports, [])
  assert.deepEqual(
    broken(src, ({ imports }) => imports.map(({ from }) => from).filter((from) => /^(?:test|scripts)\//.test(from))),
    [],
  )
})

test('no file imports itself by any way round', () => {
  const graph = new Map(src.map(({ path, imports }) => [path, imports.map(({ from }) => from)]))
  const reached = (path: string, seen = new Set<string>()): Set<string> => {
    for (const next of graph.get(path) ?? []) if (!seen.has(next)) reached(next, seen.add(next))
    return seen
  }
  assert.deepEqual(
    broken(src, ({ path }) => (reached(path).has(path) ? ['is part of a cycle'] : [])),
    [],
  )
})

const PURE: Record<string, readonly string[]> = {
  'node:crypto': ['createHmac', 'timingSafeEqual'],
  'node:net': ['BlockList', 'isIP'],
}

test('core is pure: no chance, no clock, no waiting, nothing from outside but what only computes', () => {
  const imported = ({ imports }: SourceFile) =>
    imports
      .filter(({ from }) => !from.startsWith('src/core/'))
      .flatMap(({ from, names }) =>
        matches(names.replace(/\b(?:type|as) /g, ''), /\w+/g)
          .filter((name) => !PURE[from]?.includes(name))
          .map((name) => `${name} of ${from}`),
      )
  assert.deepEqual(broken(core, imported), [])
  const impure =
    /\b(?:Math\.random|random\w+|performance|process\b|console|set(?:Timeout|Interval|Immediate)|async|await|Promise|globalThis|crypto\.)/g
  assert.deepEqual(
    broken(core, ({ code }) => matches(code.replace(/'node:crypto'/g, ''), impure)),
    [],
  )
})

/** `new Date` of a number is calendar arithmetic on a header here: is there such a day? No clock is read. */
const DATES: Record<string, number> = { 'src/core/retry-after.ts': 1 }

test('no decision is made by the clock of this process', () => {
  const found = broken(src, ({ code }) => matches(code, /\bDate\.now\b|\bnew Date\b|\bDate\(/g))
  const allowed = Object.entries(DATES).flatMap(([path, n]) => Array(n).fill(`${path}: new Date`))
  assert.deepEqual(found, allowed)
})

test('SQL stands in src/sql and in the migrations', () => {
  const sql = /\b(?:select\s|insert\s+into|update\s+outbox|delete\s+from|(?:from|join|into|table|view)\s+outbox\.)/gi
  assert.deepEqual(
    broken(
      src.filter(({ name }) => !name.startsWith('sql/')),
      ({ code }) => matches(code, sql),
    ),
    [],
  )
})

test('each verb that moves deliveries begins by saying how, as the table of moves has it', () => {
  const moving =
    /(?:insert\s+into|update|delete\s+from)\s+outbox\.(?:queue|receipt|delivery)\b|outbox\.enqueue(?:_many)?\(/
  const verbOf = ({ name }: SourceFile) => name.slice('sql/'.length, -'.ts'.length)
  const verbs = src
    .filter(({ name }) => name.startsWith('sql/'))
    .filter((file) => moving.test(file.code) || Object.hasOwn(MOVES, verbOf(file)))
  assert.deepEqual(verbs.map(verbOf).sort(), Object.keys(MOVES).sort())
  const rule = (file: SourceFile) => {
    const line = file.text.slice(0, file.text.indexOf('\n'))
    return line === `/** ${MOVES[verbOf(file)]} */` ? [] : [line]
  }
  assert.deepEqual(broken(verbs, rule), [])
})

const ONLY_IN: readonly (readonly [name: string, pattern: RegExp, allowed: RegExp])[] = [
  ['p-retry', /^p-retry$/, /^loop\.ts$/],
  ['undici', /^undici(?:\/|$)/, /^(?:attempt|exchange|connector)\.ts$/],
  ['pino', /^pino(?:\/|$)/, /^(?:log\.ts|cli\/.*)$/],
]

for (const [name, pattern, allowed] of ONLY_IN)
  test(`${name} is imported where it belongs and nowhere else`, () => {
    const users = src.filter(({ imports }) => imports.some(({ from }) => pattern.test(from)))
    assert.deepEqual(
      broken(users, (file) => (allowed.test(file.name) ? [] : [`imports ${name}`])),
      [],
    )
  })

test('nothing retries, redirects or trusts behind the ledger', () => {
  const forbidden = /interceptors|\bfetch\(|Retry(?:Agent|Handler)|\bredirect:|maxRedirections|ProxyAgent/g
  assert.deepEqual(
    broken(src, ({ code }) => matches(code, forbidden)),
    [],
  )
  const blind = new RegExp(['reject', 'Unauthorized'].join(''), 'g')
  assert.deepEqual(
    broken(everywhere, ({ text }) => matches(text, blind)),
    [],
  )
})

test('no file is longer than 250 lines, deeper than two folders, or named after nothing', () => {
  const lines = ({ text }: SourceFile) => text.split('\n').length - 1
  assert.deepEqual(
    broken(everywhere, (file) => (lines(file) > 250 ? [`${lines(file)} lines`] : [])),
    [],
  )
  assert.deepEqual(
    broken(src, ({ path }) => (path.split('/').length > 3 ? ['too deep'] : [])),
    [],
  )
  const nothing = /\b(?:utils?|types?|helpers?|constants?|common|misc)(?=[./])/g
  assert.deepEqual(
    broken(everywhere, ({ name }) => matches(name, nothing)),
    [],
  )
})

test('every file says first what it is for', () => {
  const rule = ({ text }: SourceFile) => {
    const [line = '', next = ''] = text.replace(/^#!.*\n/, '').split('\n')
    const said = line.startsWith('/** ') ? next : line
    return /^\/\/ .{12,}/.test(said) || /^\/\/ outledger \w+/.test(said) ? [] : [said]
  }
  assert.deepEqual(
    broken(
      everywhere.filter(({ path }) => !path.endsWith('.test.ts')),
      rule,
    ),
    [],
  )
})

test('every error that is thrown is in the table, and every error of the table is thrown', () => {
  const call = /new OutledgerError\(\s*((?:[^,()]|\([^()]*\))*),/g
  const codes = src.flatMap(({ code }) =>
    [...code.matchAll(call)].flatMap(([, first = '']) => matches(first, /'\w+'(?!\s*\?)/g)),
  )
  // completeOptions has this one unless its caller names another.
  const byDefault = src.flatMap(({ code }) => matches(code, /(?<=code: Code = )'\w+'/g))
  const thrown = new Set([...codes, ...byDefault].map((code) => code.replaceAll("'", '')))
  assert.deepEqual([...thrown].sort(), Object.keys(ERRORS).sort())
})

test('no tracked text knows the machine it was written on or where packages come from', () => {
  const machine = /(?<![\w.])\/(?:work|root|tmp|home\/\w+|Users\/\w+)\/\w+|\b[A-Z]:\\Users/g
  const registry = /\bregistry\.[\w-]+\.\w+|\bnpmjs\.(?:org|com)|"resolve[d]":|artifact[o]ry|verdacci[o]/g
  const text = filesBelow('.').filter((path) => !/\.(?:png|svg|gif|tgz|log)$/.test(path))
  assert.ok(text.includes('package-lock.json') && text.includes('drizzle/0000_tables.sql'))
  assert.deepEqual(
    broken(
      text.map((path) => ({ path, name: path, text: textOf(path), code: '', imports: [] })),
      (file) => [...matches(file.text, machine), ...matches(file.text, registry)],
    ),
    [],
  )
})

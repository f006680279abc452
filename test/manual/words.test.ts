// Words of the manual that stand for something in the source: each exists there, and nothing that exists is left out.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ENDED_STATES, OPEN_STATES, STATES } from '../../src/core/state.ts'
import * as everything from '../../src/index.ts'
import { checked } from '../../src/message.ts'
import { grantsText } from '../../src/sql/grants.ts'
import * as testing from '../../src/testing.ts'
import { BLOCKS, PROSE, README, sectionOf, spansOf, tableOf } from '../support/manual.ts'
import { filesBelow, textOf } from '../support/source.ts'

const sorted = (words: Iterable<string>) => [...new Set(words)].toSorted()
const first = ([cell = '']: string[]) => spansOf(cell)

test('the states are those of the code, each with where its row is', () => {
  const rows = tableOf('state', 'means', 'row in')
  assert.deepEqual(rows.flatMap(first), [...STATES])
  const placeOf = (place: string) => rows.filter((row) => row[2] === `\`outbox.${place}\``).flatMap(first)
  assert.deepEqual(placeOf('queue'), [...OPEN_STATES])
  assert.deepEqual(placeOf('receipt'), [...ENDED_STATES])
})

test('the fields of a message are those that enqueue takes', () => {
  const named = tableOf('field', 'means')
    .flatMap(first)
    .filter((word) => /^[a-z]\w+$/i.test(word))
  const taken = textOf('src/message.ts').match(/const FIELDS = \[([\s\S]+?)\]/)?.[1] ?? ''
  assert.deepEqual(sorted(named), sorted(taken.match(/\w+/g) ?? []))
  assert.equal(checked({ key: 'k', endpoint: 'e', type: 't', payload: '{}' }).key, 'k')
})

test('the roles are those that --print-grants prints', () => {
  const printed = grantsText().match(/\boutledger_\w+/g) ?? []
  assert.deepEqual(sorted(tableOf('role', 'may').flatMap(first)), sorted(printed))
})

test('the headers are those that are sent', () => {
  const named = tableOf('header', 'holds').flatMap(first)
  const sources = filesBelow('src').map(textOf).join('\n')
  const sent = sources.match(/(?<=')(?:webhook|outledger|idempotency)-[a-z-]+(?=')|(?<=')traceparent(?=',)/g) ?? []
  const others = ['content-type', 'authorization']
  assert.deepEqual(sorted(named), sorted([...sent, ...others]))
  for (const name of others) assert.ok(sources.includes(`'${name}'`), name)
})

/** Names of values and types that a file exports. */
function exported(path: string): string[] {
  const text = textOf(path)
  const lists = [...text.matchAll(/^export (?:type )?\{([\s\S]+?)\} from/gm)].flatMap(([, list = '']) =>
    list.split(','),
  )
  const spaces = [...text.matchAll(/^export \* as (\w+) from/gm)].map(([, name]) => name as string)
  return [...lists.map((name) => name.replace(/\btype\b/, '').trim()).filter(Boolean), ...spaces]
}

test('the names are those that the package exports', () => {
  const named = tableOf('name', 'is').flatMap(first)
  const all = [...exported('src/index.ts'), ...exported('src/testing.ts')]
  const values = [...Object.keys(everything), ...Object.keys(testing)]
  assert.deepEqual(
    values.filter((name) => !all.includes(name)),
    [],
    'what is there at run time was read from the source',
  )
  const members = Object.keys(everything.outbox).map((name) => `outbox.${name}`)
  assert.deepEqual(sorted(named), sorted([...all.filter((name) => name !== 'outbox'), ...members]))
})

test('every entry of the package and the command of CI are in the manual', () => {
  const { name, exports } = JSON.parse(textOf('package.json'))
  for (const path of Object.keys(exports).filter((path) => !path.endsWith('.json')))
    assert.ok(README.includes(`'${path.replace('.', name)}'`), path)
  const commands = textOf('.ci/run')
    .split('\n')
    .filter((line) => /^npm (?!.*--prefix)/.test(line))
  assert.ok(commands.length > 0)
  for (const command of commands) assert.match(README, new RegExp(`^${command}\\b`, 'm'))
})

const WORDS = [
  ...['endpoint', 'delivery', 'key', 'enqueue', 'lane', 'claim', 'lease', 'token', 'attempt', 'outcome', 'verdict'],
  ...[
    'settle',
    'certainty',
    'release',
    'receipt',
    'ending',
    'sweep',
    'purge',
    'tombstone',
    'replay',
    'resend',
    'paused',
  ],
  ...[
    'backing off',
    'tripped',
    'blocked',
    'hold',
    'retain',
    'class',
    'parked',
    'suspect',
    'poison',
    'half-open',
    'probe',
    'decline',
  ],
]

test('each word of the project is explained once', () => {
  const explained = tableOf('word', 'means').flatMap(([cell = '']) => cell.split(' · '))
  assert.deepEqual(explained.toSorted(), WORDS.toSorted())
})

/** What a span of code may be: a name with an inner capital or underscore, a dotted name of ours, a flag. */
const NAME = /^(?:--[a-z-]+|(?:outbox|outledger)\.\w+|[a-z]+(?:[A-Z_]\w*)+|[A-Z]+(?:_[A-Z]+)+)$/

/** Names of others. */
const FOREIGN = new Set([
  'lock_timeout',
  'http_NNN',
  'tls_CODE',
  'request_CODE',
  'pg_dump',
  'NODE_EXTRA_CA_CERTS',
  'UV_THREADPOOL_SIZE',
])

test('every name in the prose exists in the source', () => {
  const paths = ['src', 'drizzle'].flatMap(filesBelow).filter((path) => /\.(?:ts|sql)$/.test(path))
  const known = [...paths.map(textOf), ...BLOCKS.map(({ text }) => text)].join('\n')
  const flags = new Set(
    [...README.matchAll(/^\| `(--[a-z-]+)/gm), ...README.matchAll(/ `(--[a-z-]+)` \|/g)].map(([, flag]) => flag),
  )
  const there = (name: string): boolean => {
    if (name.startsWith('--')) return flags.has(name)
    return new RegExp(`(?<![\\w$])${name.replace(/^out\w+\./, '').replaceAll('$', '\\$')}(?!\\w)`).test(known)
  }
  const names = sorted(spansOf(PROSE)).filter(
    (span) => NAME.test(span) && !FOREIGN.has(span) && !/^http_\d+$/.test(span),
  )
  assert.ok(names.length > 100)
  assert.deepEqual(
    names.filter((name) => !there(name)),
    [],
  )
})

test('every link within the manual has its heading', () => {
  const anchors = [...README.matchAll(/^#+ (.+)$/gm)].map(([, title = '']) =>
    title
      .toLowerCase()
      .replace(/[^\w -]/g, '')
      .replaceAll(' ', '-'),
  )
  const links = [...README.matchAll(/\]\(#([\w-]+)\)/g)].map(([, link]) => link as string)
  assert.ok(links.length > 15)
  assert.deepEqual(
    links.filter((link) => !anchors.includes(link)),
    [],
  )
  assert.ok(sectionOf('## Words').length > 0)
})

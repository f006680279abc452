// How verbs print, without a database: what a person reads, on a terminal and through a pipe.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { test } from 'node:test'
import { durationText, facts, harmless, instantText, type Screen, secondText, table } from '../src/cli/print.ts'

const screen = (more: Partial<Screen> = {}): Screen => ({ tty: false, width: 40, colour: false, print() {}, ...more })

interface Row {
  readonly name: string
  readonly n: number
  readonly note?: string
}

const COLUMNS = [
  { title: 'name', of: ({ name }: Row) => name },
  { title: 'n', of: ({ n }: Row) => n, right: true },
  { title: 'note', of: ({ note }: Row) => note, colour: () => 'red' as const },
]

test('a table is aligned under its titles, without what is empty in every row', () => {
  const rows = [
    { name: 'a', n: 7 },
    { name: 'longer', n: 1042 },
  ]
  assert.equal(table(screen(), COLUMNS, rows), 'name       n\na          7\nlonger  1042')
  assert.equal(table(screen(), COLUMNS, [{ name: 'a', n: 7, note: 'x' }]), 'name  n  note\na     7  x')
})

test('only a terminal cuts, the widest first, and never a number', () => {
  const rows: [Row] = [{ name: 'n'.repeat(30), n: 123_456_789, note: 'o'.repeat(20) }]
  assert.ok(table(screen(), COLUMNS, rows).includes('n'.repeat(30)))
  const [, line] = table(screen({ tty: true }), COLUMNS, rows).split('\n')
  assert.equal(line, `${'n'.repeat(12)}…  123456789  ${'o'.repeat(13)}…`)
  assert.equal(line?.length, 40)
  const [, long] = table(screen({ tty: true }), COLUMNS, [
    { ...rows[0], name: 'n'.repeat(14), n: 1_234_567_890_123_456 },
  ]).split('\n')
  assert.match(long ?? '', /1234567890123456/)
})

test('colour surrounds the text of a cell and nothing else', () => {
  const rows = [{ name: 'a', n: 1, note: 'bad' }]
  assert.equal(table(screen({ colour: true }), COLUMNS, rows).split('\n')[1], 'a     1  \u001b[31mbad\u001b[0m')
})

const STEERING: readonly (readonly [why: string, character: string])[] = [
  ['an escape sequence', '\u001b'],
  ['a line end', '\n'],
  ['a carriage return', '\r'],
  ['a C1 control', '\u009b'],
  ['a line separator', '\u2028'],
  ['text that runs backwards', '\u202e'],
]

for (const [why, character] of STEERING)
  test(`${why} from the database does not reach the terminal`, () => {
    const text = `was${character}[2Jgone`
    assert.equal(harmless(text), 'was\ufffd[2Jgone')
    assert.equal(facts(screen(), [['label', text]]), 'label  was\ufffd[2Jgone')
    assert.equal(table(screen(), COLUMNS, [{ name: text, n: 1 }]).split('\n')[1], 'was\ufffd[2Jgone  1')
  })

test('instants and durations are told as people read them', () => {
  assert.equal(instantText('2026-11-30T22:15:04.123456Z'), '2026-11-30 22:15:04.123Z')
  assert.equal(secondText('2026-11-30T22:15:04.123456Z'), '2026-11-30 22:15:04Z')
  for (const [ms, wanted] of [
    [0, '0 ms'],
    [999, '999 ms'],
    [1_000, '1.0 s'],
    [9_999, '9.9 s'],
    [10_000, '10 s'],
    [60_000, '1 min'],
    [303_000, '5 min 3 s'],
    [3_600_000, '1 h'],
    [97_200_000, '1 d 3 h'],
    [8_640_000_000, '100 d'],
  ] as const)
    assert.equal(durationText(ms), wanted)
})

test('a reader that has seen enough is no error', async () => {
  const child = spawn(process.execPath, ['--import', 'tsx', 'src/cli/main.ts', '--help'], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  child.stdout.destroy()
  let complaint = ''
  child.stderr.on('data', (chunk) => {
    complaint += chunk
  })
  const [code] = await once(child, 'close')
  assert.deepEqual([code, complaint], [0, ''])
})

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { type Ending, MOVES, STATES, type State } from '../../src/core/state.ts'

const source = (path: string) => readFileSync(path, 'utf8')
const quoted = (text = '') => [...text.matchAll(/'(\w+)'/g)].map((match) => match[1]).sort()

const OPEN: readonly State[] = ['waiting', 'leased', 'parked', 'blocked']
const ENDED: readonly Ending[] = ['delivered', 'dead', 'cancelled']

/** `leased → waiting | dead; parked → waiting` as pairs of one state and the next. */
const pairs = Object.entries(MOVES).flatMap(([verb, moves]) =>
  moves.split('; ').flatMap((move) => {
    const [from = '', to = ''] = move.split(' → ')
    return from.split(' | ').flatMap((a) => to.split(' | ').map((b) => ({ verb, from: a, to: b })))
  }),
)

const verbsThat = (wanted: (pair: (typeof pairs)[number]) => boolean) => [
  ...new Set(pairs.filter(wanted).map(({ verb }) => verb)),
]

test('a state is open, ended or purged', () => {
  assert.deepEqual([...STATES], [...OPEN, ...ENDED, 'purged'])
})

test('moves speak of states only, and a delivery comes from nothing once', () => {
  const known = new Set<string>(STATES)
  assert.deepEqual(
    pairs.filter(({ from, to }) => !known.has(to) || (from !== 'nothing' && !known.has(from))),
    [],
  )
  assert.deepEqual(
    verbsThat(({ from }) => from === 'nothing'),
    ['enqueue', 'enqueue-many'],
  )
})

test('what has ended is only purged, or found to have been delivered after all', () => {
  const out = pairs.filter(({ from }) => [...ENDED, 'purged'].includes(from))
  const allowed = out.filter(({ verb, to }) => to === 'delivered' || (verb === 'purge' && to === 'purged'))
  assert.deepEqual(allowed, out)
  assert.deepEqual(
    verbsThat(({ from }) => from === 'delivered'),
    ['purge'],
  )
  assert.deepEqual(
    verbsThat(({ from }) => from === 'purged'),
    [],
  )
})

test('open work is never purged', () => {
  assert.deepEqual(
    pairs.filter(({ from, to }) => OPEN.some((state) => state === from) && to === 'purged'),
    [],
  )
})

test('a late success ends every delivery that could have been sent', () => {
  for (const verb of ['late', 'mend'])
    assert.deepEqual(
      pairs.filter((pair) => pair.verb === verb && pair.to === 'delivered').map(({ from }) => from),
      ['waiting', 'leased', 'blocked', 'dead', 'cancelled'],
    )
})

for (const [type, ...checks] of [
  ['Outcome', 'attempt_outcome', 'receipt_certainty'],
  ['Verdict', 'attempt_verdict'],
  ['Ending', 'receipt_ending'],
] as const) {
  test(`the words of ${type} are those that ${checks.join(' and ')} let into the table`, () => {
    const words = quoted(new RegExp(`export type ${type} = (.*)`).exec(source('src/core/state.ts'))?.[1])
    assert.ok(words.length > 1)
    for (const name of checks) {
      const check = new RegExp(`check\\('${name}', sql\`[^\`]* in \\((.*)\\)\``).exec(source('src/sql/schema.ts'))?.[1]
      assert.deepEqual(quoted(check), words)
    }
  })
}

test('the view of deliveries knows the open states, and takes the ended ones from the receipt', () => {
  const sql = source('drizzle/0001_functions_and_views.sql')
  const [, cases = ''] = /coalesce\(r\.ending,\s+CASE (WHEN.*?) END\) AS state/s.exec(sql) ?? []
  const states = [...cases.matchAll(/(?:THEN|ELSE) '(\w+)'/g)].map((match) => match[1])
  assert.deepEqual(states.sort(), [...OPEN].sort())
})

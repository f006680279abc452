import assert from 'node:assert/strict'
import { test } from 'node:test'
import { screenOf } from '../src/cli/print.ts'
import { purgeOnce } from '../src/index.ts'
import { settle } from '../src/sql/settle.ts'
import { testDatabase } from './support/database.ts'
import { add, addEndpoint, GONE, lease, result, TIMEOUT } from './support/ledger.ts'
import { caughtCli } from './support/screen.ts'

const db = await testDatabase()
const clinic = await addEndpoint(db)
const cli = (...args: string[]) => caughtCli(db.url, args)

const end = async (more: Parameters<typeof result>[1] = {}) =>
  settle(
    db,
    (await lease(db, clinic)).map((one) => result(one, { tookMs: 0, ...more })),
    'p-1',
  )

await add(db, 'purged')
await end()
await db.query('update outbox.receipt set delete_after = ended_at')
await purgeOnce(db, { tombstoneDays: 365 })
await add(db, 'doubtful', { correlationId: 'c-1' })
await end({ ...TIMEOUT, delayMs: 0 })
await end(GONE)
await add(db, 'waiting', { delayMs: '3600000' })

test('show tells the story of a delivery in time order, and not its payload', async () => {
  const { code, stdout, stderr } = await cli('show', 'doubtful')
  assert.deepEqual([code, stderr], [0, ''])
  const lines = [
    /^doubtful · dead: gone · may have been applied$/,
    /^endpoint +clinic \(class clinic\)$/,
    /^correlation +c-1$/,
    /^certainty +unknown$/,
    /\+0 ms {2}written by app$/,
    /attempt 1: no answer \(unknown · retry · timeout\)$/,
    /clinic\.test, ended in phase headers, took 0 ms, .*, by p-1$/,
    /attempt 2: HTTP 410 \(rejected · dead · gone\)$/,
    /ended dead: gone, certainty unknown$/,
  ]
  let from = 0
  for (const line of lines) {
    const at = stdout.split('\n').findIndex((text, i) => i >= from && line.test(text))
    assert.ok(at >= 0, `${line} after line ${from} of\n${stdout}`)
    from = at + 1
  }
  assert.doesNotMatch(stdout, /1842/)
})

test('show of an open delivery says why it is not delivered yet', async () => {
  const { stdout } = await cli('show', 'waiting')
  assert.match(stdout, /^waiting · waiting\n/)
  assert.match(stdout, /\nnot delivered yet: due in 00:59:\d\d\n$/)
})

test('show of a key that nothing has ends with 1, and knows a purged one', async () => {
  const [missing, purged] = await Promise.all([cli('show', 'nobody'), cli('show', 'purged')])
  assert.deepEqual(
    [missing.code, missing.stdout, missing.stderr],
    [1, '', 'outledger: no delivery has the key nobody\n'],
  )
  assert.deepEqual([purged.code, purged.stdout], [1, ''])
  assert.match(
    purged.stderr,
    /key purged was purged on .*: delivered after 1 attempt, certainty delivered; its key deduplicates until /,
  )
  const { code, message } = JSON.parse((await cli('show', 'purged', '--json')).stderr).error
  assert.deepEqual([code, /purged on/.test(message)], ['unknown_delivery', true])
})

test('list prints aligned text, and where to go on', async () => {
  const { code, stdout } = await cli('list', '--limit', '1')
  assert.equal(code, 0)
  assert.match(
    stdout,
    /^written +key +endpoint +type +attempts +last +state\n\S+ \S+ +waiting +clinic +eligibility\.changed +0 +- +due in 00:59:\d\d\nmore: add --before \d+\n$/,
  )
  assert.equal((await cli('list', '--state', 'delivered')).stdout, 'no delivery matches\n')
  assert.match((await cli('list', '--state', 'dead')).stdout, /doubtful .* dead: gone · maybe applied\n$/)
})

test('every answer is one line of JSON where that is asked for', async () => {
  for (const args of [['list'], ['show', 'doubtful'], ['status']]) {
    const { stdout, stderr } = await cli(...args, '--json')
    assert.match(stdout, /^[^\n]+\n$/)
    assert.equal(stderr, '')
    assert.equal(typeof JSON.parse(stdout), 'object')
  }
})

test('status answers at one glance whether anything is wrong', async () => {
  const { code, stdout } = await cli('status')
  assert.equal(code, 0)
  assert.match(
    stdout,
    /^\S+ \S+ {2}2 things are wrong\n {2}! no poller is alive\n {2}! 1 delivery is dead; 1 may have been applied\n/,
  )
  assert.match(stdout, /\nclinic +- +- +1 +- +- +- +open\n/)
})

test('a terminal gets colours and no line longer than it is wide, but keys stay whole', async () => {
  const key = `k-${'x'.repeat(40)}`
  await add(db, key, { type: `t${'y'.repeat(150)}`, delayMs: '1000' })
  const { stdout } = await caughtCli(db.url, ['list'], { tty: true, width: 120, colour: true })
  const ESC = '\u001b'
  assert.ok(stdout.includes(`${ESC}[31mdead: gone`))
  const plain = stdout.replaceAll(new RegExp(`${ESC}\\[\\d+m`, 'g'), '').split('\n')
  assert.ok(plain.some((line) => line.includes(key)))
  for (const line of plain) assert.ok(line.length <= 120, `${line.length}: ${line}`)
  assert.ok(plain.some((line) => line.includes('yyyy…')))
})

const SCREENS: readonly (readonly [why: string, stream: object, env: Record<string, string>, colour: boolean])[] = [
  ['a terminal', { isTTY: true, columns: 100 }, {}, true],
  ['a pipe', {}, {}, false],
  ['a terminal under NO_COLOR', { isTTY: true }, { NO_COLOR: '1' }, false],
  ['a terminal under an empty NO_COLOR', { isTTY: true }, { NO_COLOR: '' }, true],
  ['a dumb terminal', { isTTY: true }, { TERM: 'dumb' }, false],
  ['a pipe under FORCE_COLOR', {}, { FORCE_COLOR: '1' }, true],
]

for (const [why, stream, env, colour] of SCREENS)
  test(`${why} gets ${colour ? '' : 'no '}colour`, () => {
    assert.equal(screenOf({ write: () => true, ...stream }, env).colour, colour)
  })

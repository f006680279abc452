// Who owns which lane is arithmetic on heartbeats: no database here. The clock is a number.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Ownership } from '../src/ownership.ts'
import { ownershipOf } from './support/ownership.ts'

const LANES = Array.from({ length: 200 }, (_, i) => 1024 + i)

/** Which lanes of endpoint 1 each of them owns. */
const owned = (names: readonly string[], declining: readonly string[] = []) =>
  names.map((me) => LANES.filter((lane) => ownershipOf(me, names, declining).owns(1, lane)))

// case C35
test('several pollers divide all lanes among themselves; one that leaves hands over only its own', () => {
  const three = owned(['a', 'b', 'c'])
  assert.deepEqual(three.flat().toSorted(), LANES, 'each lane once')
  for (const { length } of three) assert.ok(length > 30, `${length} of 200`)
  for (const [i, after] of owned(['a', 'b']).entries())
    for (const lane of three[i] ?? []) assert.ok(after.includes(lane), 'what it had, it keeps')
})

test('the lanes of an endpoint are shared among those who can serve it, and among all when nobody can', () => {
  const names = ['a', 'b', 'c']
  assert.deepEqual(owned(names, ['a', 'c']), [[], LANES, []])
  assert.deepEqual(owned(names, ['a'])[0], [])
  assert.deepEqual(owned(names, ['a']).flat().toSorted(), LANES)
  assert.deepEqual(owned(names, names), owned(names))
  const other = (declining: string[]) => LANES.filter((lane) => ownershipOf('a', names, declining).owns(2, lane))
  assert.deepEqual(other(['a']), other([]), 'another endpoint')
})

test('who declines an endpoint helps with none of its lanes, and looks again after two minutes', () => {
  const ownership = new Ownership('me')
  assert.deepEqual([ownership.decline(1, 0), ownership.decline(1, 1_000)], [true, false], 'news only once')
  assert.deepEqual([ownership.mayHelp(1), ownership.mayHelp(2)], [false, true])
  assert.deepEqual([ownership.declines(120_999), ownership.declines(121_000)], [[1], []])
  assert.equal(ownership.mayHelp(1), true)
})

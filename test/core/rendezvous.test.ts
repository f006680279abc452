import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isOwner, nameHash } from '../../src/core/rendezvous.ts'

/** 40 endpoints with 64 lanes of each class: 7,680 lanes. */
const LANES = Array.from({ length: 40 }, (_, e) =>
  [0, 1, 2].flatMap((urgency) => Array.from({ length: 64 }, (_, p) => [e + 1, urgency * 1024 + p] as const)),
).flat()

// Names as they occur: the same host and growing process ids, plain numbers, one letter apart.
const CROWDS: readonly (readonly [why: string, names: readonly string[]])[] = [
  ['a single poller', ['alone']],
  ['two that differ in one letter', ['poller-a', 'poller-b']],
  ['three plain numbers', ['1', '2', '3']],
  ['five processes of one host', ['h-4711-a0', 'h-4712-a0', 'h-4713-a0', 'h-4714-a0', 'h-4715-a0']],
  ['eight containers', Array.from({ length: 8 }, (_, i) => `outledger-7f9c-${i}`)],
  ['names beyond ASCII, and none', ['', 'Zoë', '🩺', 'zoë']],
]

/** Owners of every lane, by name. */
const ownersOf = (names: readonly string[]) => {
  const live = names.map(nameHash)
  return LANES.map(([endpoint, lane]) => names.filter((name) => isOwner(nameHash(name), live, endpoint, lane)))
}

for (const [why, names] of CROWDS) {
  test(`every lane has exactly one owner among ${why}`, () => {
    assert.deepEqual(
      ownersOf(names).filter((owners) => owners.length !== 1),
      [],
    )
  })

  test(`${why} share the lanes evenly`, () => {
    const fair = LANES.length / names.length
    const owners = ownersOf(names).flat()
    for (const name of names) {
      const share = owners.filter((owner) => owner === name).length
      assert.ok(Math.abs(share - fair) <= 0.15 * fair, `${name} has ${share} of ${LANES.length}, fair is ${fair}`)
    }
  })
}

test('an endpoint with eight lanes does not fall to one of two pollers', () => {
  const owners = ownersOf(['poller-a', 'poller-b']).flat()
  const lopsided = Array.from({ length: 40 }, (_, e) => {
    const mine = owners.filter((_, i) => LANES[i]?.[0] === e + 1 && (LANES[i]?.[1] ?? 0) % 1024 < 8)
    return mine.filter((owner) => owner === 'poller-a').length
  }).filter((lanes) => lanes === 0 || lanes === 24)
  assert.deepEqual(lopsided, [])
})

// case C35
test('when a poller leaves, only its lanes change hands, and they go to all the others', () => {
  const names = CROWDS[4]?.[1] ?? []
  const before = ownersOf(names).flat()
  for (const gone of names) {
    const after = ownersOf(names.filter((name) => name !== gone)).flat()
    assert.deepEqual(
      after.filter((owner, i) => before[i] !== gone && owner !== before[i]),
      [],
    )
    const heirs = new Set(after.filter((_, i) => before[i] === gone))
    assert.equal(heirs.size, names.length - 1)
  }
})

// case C35
test('when a poller joins, the only lanes that move are those it gets', () => {
  const names = CROWDS[3]?.[1] ?? []
  const before = ownersOf(names).flat()
  const after = ownersOf([...names, 'newcomer']).flat()
  const moved = after.filter((owner, i) => owner !== before[i])
  assert.ok(moved.length > LANES.length / 10)
  assert.deepEqual(new Set(moved), new Set(['newcomer']))
})

test('the order in which the live pollers are listed does not matter', () => {
  const names = CROWDS[4]?.[1] ?? []
  assert.deepEqual(ownersOf([...names].reverse()).map(String), ownersOf(names).map(String))
})

// getaddrinfo holds a thread of a small pool: names whose server is silent must leave one to the others.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Names } from '../src/names.ts'
import { gate } from './support/peer.ts'
import { resolveAs } from './support/resolver.ts'

let answered = gate()
const hung = () => answered.opened.then(() => ['192.0.2.1'])
const asked = resolveAs({
  'good.test': ['192.0.2.7', '2001:db8::7'],
  'gone.test': 'ENOTFOUND',
  'hung-0.test': hung,
  'hung-1.test': hung,
})

const ask = (names: Names, name: string) =>
  new Promise<string>((resolve) =>
    names.lookup(name, {}, (error, found) => resolve(error?.code ?? found.map(({ address }) => address).join())),
  )

test('a name gives all its addresses, or why there are none', async () => {
  const names = new Names()
  assert.equal(await ask(names, 'good.test'), '192.0.2.7,2001:db8::7')
  assert.equal(await ask(names, 'gone.test'), 'ENOTFOUND')
})

test('one lookup answers all that ask for a name meanwhile; one that was slow leaves the last thread to others', async () => {
  const names = new Names({ atOnce: 2, slowMs: 20, waitMs: 60 })
  const first = Array.from({ length: 64 }, () => ask(names, 'hung-0.test'))
  assert.equal(await ask(names, 'good.test'), '192.0.2.7,2001:db8::7', 'a thread is left')
  const second = ask(names, 'hung-1.test')
  const before = asked.get('good.test')
  assert.equal(await ask(names, 'good.test'), 'dns_busy', 'two names that nobody knew yet hold both')
  assert.equal(asked.get('good.test'), before)
  answered.open()
  assert.deepEqual([...new Set(await Promise.all(first)), await second], ['192.0.2.1', '192.0.2.1'])
  assert.deepEqual([asked.get('hung-0.test'), asked.get('hung-1.test')], [1, 1])
  // Both were slow: from now on one of them at a time.
  answered = gate()
  const third = ask(names, 'hung-0.test')
  assert.equal(await ask(names, 'hung-1.test'), 'dns_busy')
  assert.equal(await ask(names, 'good.test'), '192.0.2.7,2001:db8::7')
  answered.open()
  assert.equal(await third, '192.0.2.1')
  assert.equal(await ask(names, 'hung-1.test'), '192.0.2.1')
})

test('of many names at once none is lost, and none costs more than its own turn', async () => {
  const names = new Names({ atOnce: 2, slowMs: 20, waitMs: 10_000 })
  const many = Array.from({ length: 5_000 }, (_, i) => `many-${i}.test`)
  resolveAs(Object.fromEntries(many.map((name) => [name, ['192.0.2.9']])))
  const since = performance.now()
  const found = await Promise.all(many.map((name) => ask(names, name)))
  assert.ok(found.every((address) => address === '192.0.2.9'))
  const ms = performance.now() - since
  assert.ok(ms < 5_000, `${ms} ms`)
})

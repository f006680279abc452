// Listeners are the app's code: whatever they do, the poller goes on and loses nothing.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { codeOf } from '../src/events.ts'
import { enqueue, keysOf, putClinic, testPoller } from './support/clinic.ts'
import { testDatabase } from './support/database.ts'
import { startPeer, status } from './support/peer.ts'

test('a listener that throws costs no outcome and ends nothing', async () => {
  const [db, peer] = [await testDatabase(), await startPeer()]
  await putClinic(db, peer.url, { maxAttempts: 1 })
  await enqueue(db, keysOf('thrown', 5))
  peer.next(status(503))
  const poller = testPoller(db)
  const troubles: string[] = []
  for (const event of ['claimed', 'attempt', 'delivery.dead'] as const) {
    poller.on(event, () => {
      throw new Error(`in ${event}`)
    })
  }
  poller.on('trouble', ({ during }) => {
    troubles.push(during)
    throw new Error('in trouble')
  })
  const { delivered, dead } = await poller.runOnce()
  assert.deepEqual({ delivered, dead }, { delivered: 4, dead: 1 })
  assert.deepEqual(await db.query('select state, count(*)::int as n from outbox.deliveries group by 1 order by 1'), [
    { state: 'dead', n: 1 },
    { state: 'delivered', n: 4 },
  ])
  assert.deepEqual([...new Set(troubles)].sort(), [
    'a listener of attempt',
    'a listener of claimed',
    'a listener of delivery.dead',
  ])
})

test('a listener that rejects later is told as trouble, and does not end the process', async () => {
  const [db, peer] = [await testDatabase(), await startPeer()]
  await putClinic(db, peer.url)
  await enqueue(db, ['rejected'])
  const poller = testPoller(db)
  const troubles: object[] = []
  const seen: string[] = []
  poller.on('trouble', (trouble) => troubles.push(trouble))
  poller.on('attempt', async () => Promise.reject(Object.assign(new Error('late'), { code: 'ELATE' })))
  poller.on('attempt', ({ key }) => seen.push(key))
  assert.equal((await poller.runOnce()).delivered, 1)
  assert.deepEqual([seen, troubles], [['rejected'], [{ during: 'a listener of attempt', code: 'ELATE' }]])
})

test('anything thrown has a code that may be logged', () => {
  const cases: [thrown: unknown, code: string][] = [
    [Object.assign(new Error('select 1'), { code: '40001' }), '40001'],
    [new Error('Failed query: secret', { cause: Object.assign(new Error(), { code: 'ECONNRESET' }) }), 'ECONNRESET'],
    [new TypeError('secret'), 'TypeError'],
    [undefined, 'unknown'],
    [null, 'unknown'],
    ['secret', 'unknown'],
    [{ code: '{"ssn":"123-45-6789"}', name: 'Odd' }, 'Odd'],
    [{ code: 'x'.repeat(100_000), name: 'two words' }, 'unknown'],
    [{ code: 'ERR_TLS_CERT_ALTNAME_INVALID' }, 'ERR_TLS_CERT_ALTNAME_INVALID'],
  ]
  for (const [thrown, code] of cases) assert.equal(codeOf(thrown), code)
})

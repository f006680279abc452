// Attempts that never reached the other side: what is final, and what is our own fault.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { after, test } from 'node:test'
import { OutledgerError } from '../src/index.ts'
import { deliverOnce, enqueue, putClinic, testPoller } from './support/clinic.ts'
import { testDatabase } from './support/database.ts'
import { startPeer } from './support/peer.ts'
import { testSecretValue } from './support/secret.ts'
import { until } from './support/until.ts'

const db = await testDatabase()
const peer = await startPeer()
const secrets = new Map<string, string>()
const resolveSecret = (reference: string) => {
  const secret = secrets.get(reference)
  if (secret === undefined) throw new Error(`${reference} is not there yet`)
  return secret
}
const round = () => deliverOnce(db, { resolveSecret })
const resolve = (reference: string) => secrets.get(reference) ?? testSecretValue

/** An endpoint of its own for each test, with one delivery that has been tried once. */
async function tried(name: string, url: string, settings: Parameters<typeof putClinic>[2] = {}) {
  if (!secrets.has(`vault:${name}`)) secrets.set(`vault:${name}`, testSecretValue)
  await putClinic(db, url, { name, secret: `vault:${name}`, timeoutMs: 1_000, ...settings }, { resolve })
  await enqueue(db, [name], { endpoint: name })
  await round()
  const [row] = await db.query<Record<string, unknown>>(
    'select outcome, verdict, reason, request_sent from outbox.attempts where key = $1',
    name,
  )
  return row
}
const open = async (name: string) =>
  (await db.query('select attempts, certainty, state from outbox.deliveries where key = $1', name))[0]

test('a connection that is reset before it is read from may have been read from all the same', async () => {
  const server = createServer((socket) => socket.resetAndDestroy()).listen(0, '127.0.0.1')
  after(() => server.close())
  await once(server, 'listening')
  const row = await tried('reset', `http://127.0.0.1:${(server.address() as AddressInfo).port}/`)
  assert.deepEqual([row?.outcome, row?.verdict], row?.request_sent ? ['unknown', 'retry'] : ['not_applied', 'retry'])
  assert.match(String(row?.reason), /ECONNRESET|closed/)
})

test('a secret that is missing charges nothing, and the delivery goes out when it appears', async () => {
  await putClinic(db, peer.url, { name: 'late', secret: 'vault:late' }, { resolve })
  await enqueue(db, ['late'], { endpoint: 'late' })
  const poller = testPoller(db, { resolveSecret, pollIntervalMs: 10 })
  const delays: number[] = []
  poller.on('released', ({ delayMs }) => delays.push(delayMs))
  await poller.start()
  await until('it has been given back', () => delays.length > 0)
  assert.deepEqual(await open('late'), { attempts: 0, certainty: 'not_attempted', state: 'waiting' })
  const before = peer.received.length
  secrets.set('vault:late', testSecretValue)
  await peer.untilReceived(before + 1)
  await poller.stop()
  assert.equal(delays[0], 1_000, 'no hot loop')
  assert.deepEqual(await db.query(`select number, outcome from outbox.attempts where key = 'late'`), [
    { number: 1, outcome: 'delivered' },
  ])
})

test('a secret that is none ends the delivery before anything is sent', async () => {
  secrets.set('vault:malformed', testSecretValue)
  await putClinic(db, peer.url, { name: 'malformed', secret: 'vault:malformed' }, { resolve })
  secrets.set('vault:malformed', 'whsec_short')
  await enqueue(db, ['malformed'], { endpoint: 'malformed' })
  await round()
  assert.deepEqual(await db.query(`select outcome, reason from outbox.attempts where key = 'malformed'`), [
    { outcome: 'not_applied', reason: 'bad_config' },
  ])
})

test('a header value with a line break is refused by put, and ends the delivery when a secret brings it', async () => {
  await assert.rejects(
    putClinic(db, peer.url, { name: 'split', secret: 'vault:split', headers: '{"x-a": "b\\r\\nx-c: d"}' }, { resolve }),
    (error) => error instanceof OutledgerError && error.code === 'invalid_endpoint' && /x-a/.test(error.message),
  )
  const before = peer.received.length
  secrets.set('vault:split', testSecretValue).set('vault:split-token', 'Bearer a')
  await putClinic(
    db,
    peer.url,
    { name: 'split', secret: 'vault:split', authorization: 'vault:split-token' },
    { resolve },
  )
  secrets.set('vault:split-token', 'Bearer a\r\nx-injected: 1')
  await enqueue(db, ['split'], { endpoint: 'split' })
  await round()
  assert.deepEqual(await db.query(`select outcome, verdict, reason from outbox.attempts where key = 'split'`), [
    { outcome: 'not_applied', verdict: 'dead', reason: 'bad_config' },
  ])
  assert.equal(peer.received.length, before)
})

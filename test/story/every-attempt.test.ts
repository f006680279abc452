import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Webhook } from 'standardwebhooks'
import { deliverOnce, enqueue, putClinic } from '../support/clinic.ts'
import { testDatabase } from '../support/database.ts'
import { reset, silence, startPeer, status } from '../support/peer.ts'
import { testSecretValue } from '../support/secret.ts'
import { until } from '../support/until.ts'

const db = await testDatabase()
const peer = await startPeer()
const payload = '{ "amount": 1e2, "id": 9007199254740993, "b": 1, "a": "\\u0000\\ud800" }'

const second = async () => {
  const [row] = await db.query<{ s: number }>('select floor(extract(epoch from clock_timestamp()))::float8 as s')
  return row?.s ?? 0
}

// cases C53, C54
test('every attempt carries the same key and bytes, and a timestamp and signature of its own', async () => {
  await putClinic(db, peer.url, { timeoutMs: 200 })
  await enqueue(db, ['evt_01J8:clinic'], { payload })
  peer.next(status(503), silence, reset)
  for (let number = 1; number <= 4; number++) {
    // Six minutes after the event was enqueued, and after each attempt.
    await db.age('evt_01J8:clinic', '6 minutes')
    const from = await until('another second of the database clock', async () => {
      const now = await second()
      return now > Number(peer.received.at(-1)?.headers['webhook-timestamp'] ?? 0) && now
    })
    await deliverOnce(db)
    const request = peer.received[number - 1]
    assert.ok(request)
    const timestamp = Number(request.headers['webhook-timestamp'])
    assert.ok(timestamp >= from - 1 && timestamp <= (await second()) + 1, `${timestamp} is not about ${from}`)
    new Webhook(testSecretValue).verify(request.body, request.headers)
  }
  const different = (name: string) => new Set(peer.received.map(({ headers }) => headers[name])).size
  assert.equal(peer.received.length, 4)
  for (const { body } of peer.received) assert.equal(body.toString(), payload)
  for (const name of ['idempotency-key', 'webhook-id', 'outledger-type', 'content-length'])
    assert.equal(different(name), 1)
  for (const name of ['webhook-timestamp', 'webhook-signature']) assert.equal(different(name), 4)
  assert.deepEqual(
    peer.received.map(({ headers }) => headers['outledger-attempt']),
    ['1', '2', '3', '4'],
  )
  assert.equal(peer.received[0]?.key, 'evt_01J8:clinic')
})

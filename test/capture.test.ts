// What is kept of a response body, and that nothing in it can harm the record of the attempt.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { enqueue, putClinic, testPoller } from './support/clinic.ts'
import { testDatabase } from './support/database.ts'
import { expire, lease } from './support/ledger.ts'
import { type Answer, gate, startPeer } from './support/peer.ts'

const db = await testDatabase()
const peer = await startPeer()
const poller = testPoller(db)

const answer =
  (code: number, body: string | Buffer): Answer =>
  (response) =>
    response.writeHead(code).end(body)

const attempts = (key: string) =>
  db.query<{ excerpt: string | null; outcome: string; reason: string | null; bytes_in: number }>(
    `select outcome, reason, bytes_in, excerpt from outbox.attempts where key = $1`,
    key,
  )

/** 1 MB with U+0000, a surrogate of its own, bytes that are no UTF-8, quotes and backslashes. */
const nasty = Buffer.concat([
  Buffer.from('{"error": "a\0b\\u0000 \\" {} NULL, '),
  Buffer.from([0xed, 0xa0, 0x80, 0xff]),
  Buffer.from('end"}'),
  Buffer.alloc(1_000_000, 'x'),
])

// case C44
for (const captureResponse of [true, false])
  test(`a 500 with U+0000 and 1 MB is recorded once, bounded, with capture ${captureResponse ? 'on' : 'off'}`, async () => {
    const key = `c44-${captureResponse}`
    await putClinic(db, peer.url, { captureResponse })
    await enqueue(db, [key])
    peer.next(answer(500, nasty))
    await poller.runOnce()
    const [row, ...more] = await attempts(key)
    assert.ok(row && more.length === 0, 'one row')
    const { bytes_in: read, excerpt, ...rest } = row
    assert.deepEqual(rest, { outcome: 'unknown', reason: 'http_500' })
    assert.ok(read > 0 && read <= 16_384, `${read} bytes were read`)
    const start = '{"error": "a\ufffdb\\u0000 \\" {} NULL, \ufffd\ufffd\ufffd\ufffdend"}'
    if (captureResponse) assert.equal(excerpt, start.padEnd(2_048 - 4 * 2 - 2, 'x'))
    else assert.equal(excerpt, null)
    assert.equal(peer.received.filter((request) => request.key === key).length, 1)
  })

test('a short answer is kept whole beside its outcome, an empty one not at all, and each row has its own', async () => {
  await putClinic(db, peer.url, { captureResponse: true })
  await enqueue(db, ['short', 'empty', 'other'])
  peer.answer((response, { key }) =>
    response.writeHead(key === 'other' ? 400 : 200).end(key === 'empty' ? '' : `{"id":"${key}"}`),
  )
  await poller.runOnce()
  assert.deepEqual(
    [await attempts('short'), await attempts('empty'), await attempts('other')].flat().map(({ excerpt }) => excerpt),
    ['{"id":"short"}', null, '{"id":"other"}'],
  )
})

test('what comes after its lease is kept as evidence, with its answer', async () => {
  const endpoint = await putClinic(db, peer.url, { captureResponse: true, partitions: 1 })
  await enqueue(db, ['late'])
  const moment = gate()
  peer.answer(async (response) => {
    await moment.opened
    response.writeHead(200).end('late but here')
  })
  const round = poller.runOnce()
  await peer.untilReceived(peer.received.length + 1)
  await expire(db, 'late')
  assert.equal((await lease(db, endpoint)).length, 1, 'another poller takes it over')
  moment.open()
  assert.equal((await round).fenced, 1)
  assert.deepEqual(await attempts('late'), [
    { outcome: 'delivered', reason: null, bytes_in: 13, excerpt: 'late but here' },
  ])
})

// The peer that other tests lean on does what it says, and counts what it was sent.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { test } from 'node:test'
import { connect as connectTls } from 'node:tls'
import { CERTIFICATES } from './support/certificates.ts'
import { startFaultPeer } from './support/fault-peer.ts'
import { answer, deaf, reset } from './support/faults.ts'

const request = (key: string, body: string) =>
  `POST / HTTP/1.1\r\nhost: x\r\nidempotency-key: ${key}\r\noutledger-attempt: 3\r\ncontent-length: ${body.length}\r\n\r\n${body}`

test('each request is noted byte for byte, however it is cut, with its connection and place on it', async () => {
  const peer = await startFaultPeer()
  peer.meet('b', answer(503, {}, 'no'), reset)
  const socket = connect(peer.port, '127.0.0.1').setEncoding('latin1')
  const [a, b] = [request('a', '{"x":1}'), request('b', '[]')]
  for (const piece of [a.slice(0, 30), a.slice(30, -3), a.slice(-3)]) {
    socket.write(piece)
    await new Promise(setImmediate)
  }
  assert.match((await once(socket, 'data'))[0], /^HTTP\/1.1 200 /)
  socket.write(b)
  assert.match((await once(socket, 'data'))[0], /^HTTP\/1.1 503 [\s\S]*no$/)
  socket.write(b)
  assert.equal((await once(socket, 'error'))[0].code, 'ECONNRESET')
  assert.deepEqual(
    peer.seen.map(({ key, number, connection, nth, body, bytes, complete }) => [
      ...[key, number, connection, nth, body.toString(), bytes, complete],
    ]),
    [
      ['a', 3, 1, 1, '{"x":1}', a.length, true],
      ['b', 3, 1, 2, '[]', b.length, true],
      ['b', 3, 1, 3, '[]', b.length, true],
    ],
  )
  assert.equal(peer.bytes, a.length + 2 * b.length)
})

test('of a request that is not read to its end, what was read is noted', async () => {
  const peer = await startFaultPeer()
  peer.standing(deaf)
  const socket = connect(peer.port, '127.0.0.1')
  socket.write(request('a', 'x'.repeat(1_000_000)))
  while (peer.of('a').length === 0) await new Promise(setImmediate)
  const [one] = peer.of('a')
  assert.deepEqual([one?.complete, one?.body.length], [false, 0])
  socket.destroy()
})

const refusals: Partial<Record<string, string>> = {
  expired: 'CERT_HAS_EXPIRED',
  'not-yet-valid': 'CERT_NOT_YET_VALID',
  'wrong-name': 'ERR_TLS_CERT_ALTNAME_INVALID',
  'self-signed': 'DEPTH_ZERO_SELF_SIGNED_CERT',
  'unknown-ca': 'SELF_SIGNED_CERT_IN_CHAIN',
}

for (const kind of [...CERTIFICATES, 'old-protocol'] as const)
  test(`a certificate is what its name says: ${kind}`, async () => {
    const peer = await startFaultPeer({ tls: kind })
    const socket = connectTls({ port: peer.port, host: '127.0.0.1' })
    const [error] = await Promise.race([once(socket, 'error'), once(socket, 'secureConnect').then(() => [null])])
    if (kind === 'old-protocol') assert.match(error?.code, /PROTOCOL/)
    else assert.equal(error?.code, refusals[kind])
    socket.destroy()
  })

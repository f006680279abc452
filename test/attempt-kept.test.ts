// A kept connection that the other side has reset: nothing was written on it, so that nothing has failed.
import assert from 'node:assert/strict'
import { subscribe } from 'node:diagnostics_channel'
import type { Socket } from 'node:net'
import { test } from 'node:test'
import { Sender } from '../src/attempt.ts'
import { startFaultPeer } from './support/fault-peer.ts'
import { type Fault, ok } from './support/faults.ts'

let dialled: Socket | undefined
subscribe('net.client.socket', (message) => {
  dialled = (message as { socket: Socket }).socket
})

for (const kept of [1, 5])
  test(`a request that finds ${kept} kept connections reset goes out on a new one, and once`, async () => {
    const peer = await startFaultPeer()
    const sender = new Sender()
    const send = () =>
      sender.send({
        ...{ url: new URL(peer.url), headers: [], body: Buffer.from('{}') },
        ...{ timeoutMs: 5_000, allowPrivate: true, capture: false },
      })
    const sides: { raw: Socket; own: Socket }[] = []
    const noted: Fault = {
      at: 'request',
      act: (wire) => {
        sides.push({ raw: wire.raw, own: dialled as Socket })
        ok.act(wire)
      },
    }
    peer.standing(noted)
    await Promise.all(Array.from({ length: kept }, send))
    const { own } = sides.at(-1) ?? assert.fail()
    // Between the error of a connection and its end, undici still gives it a request.
    const next = new Promise<Awaited<ReturnType<typeof send>>>((resolve) => {
      own.prependOnceListener('error', () => resolve(send()))
    })
    for (const { raw } of sides) raw.resetAndDestroy()
    const { status, error, requestSent } = await next
    assert.deepEqual({ status, error, requestSent }, { status: 200, error: null, requestSent: true })
    assert.equal(peer.seen.length, kept + 1)
    await sender.close()
  })

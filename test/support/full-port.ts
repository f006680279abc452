// A port on loopback whose queue of connections is full: what dials it waits until it gives up.
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { after } from 'node:test'
import { Worker } from 'node:worker_threads'
import { until } from './until.ts'

/** Listens, tells its port and never comes back to accept anything. */
const LISTENER = `
const { parentPort } = require('node:worker_threads')
const server = require('node:net').createServer().listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => {
  parentPort.postMessage(server.address().port)
  setImmediate(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0))
})`

export async function fullPort(): Promise<number> {
  const worker = new Worker(LISTENER, { eval: true })
  const [port] = (await once(worker, 'message')) as [number]
  const fillers: Socket[] = []
  after(async () => {
    for (const socket of fillers) socket.destroy()
    await worker.terminate()
  })
  // The first ones are taken into the queue; it is full when one is not, though those before it were long ago.
  const waiting = () => fillers.some(({ connecting }) => connecting)
  const enough = () => fillers.filter(({ connecting }) => !connecting).length >= 2
  for (let i = 0; i < 4; i++) fillers.push(connect({ port, host: '127.0.0.1' }).on('error', () => {}))
  await until('the queue of the port is full', () => enough() && waiting())
  return port
}

// A real HTTP peer on loopback that records every request byte for byte and answers by script.
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { after } from 'node:test'

export interface Received {
  readonly headers: Record<string, string>
  readonly body: Buffer
  readonly key: string
  readonly number: number
}

/** Answers one request: write the response, or misuse the socket. */
export type Answer = (response: ServerResponse, request: Received, socket: Socket) => unknown

export interface Peer {
  readonly url: string
  /** In the order in which they were fully read. */
  readonly received: Received[]
  /** Answer all requests like this from now on. */
  answer(answer: Answer): void
  /** Answer the next requests like this, one after the other, before the standing answer. */
  next(...answers: Answer[]): void
  /** Resolves when `n` requests have been received in all. */
  untilReceived(n: number): Promise<void>
  close(): Promise<void>
}

export const status =
  (code: number, headers: Record<string, string> = {}): Answer =>
  (response) =>
    response.writeHead(code, headers).end()

/** Reads the request and never answers. */
export const silence: Answer = () => {}

/** Reads the request and resets the connection. */
export const reset: Answer = (_response, _request, socket) => socket.resetAndDestroy()

/** A peer that answers 200 until it is told otherwise. */
export async function startPeer(): Promise<Peer> {
  const received: Received[] = []
  const script: Answer[] = []
  const waiting: { n: number; resolve: () => void }[] = []
  let standing: Answer = status(200)
  const server = createServer(async (request: IncomingMessage, response) => {
    const chunks: Buffer[] = []
    try {
      for await (const chunk of request) chunks.push(chunk)
    } catch {
      return
    }
    const headers = request.headers as Record<string, string>
    const one = {
      headers,
      body: Buffer.concat(chunks),
      key: headers['idempotency-key'] ?? '',
      number: Number(headers['outledger-attempt']),
    }
    received.push(one)
    ;(script.shift() ?? standing)(response, one, request.socket)
    for (const { n, resolve } of waiting) if (received.length >= n) resolve()
  })
  server.keepAliveTimeout = 60_000
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const close = async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }
  after(close)
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hooks`,
    received,
    answer(answer) {
      standing = answer
    },
    next(...answers) {
      script.push(...answers)
    },
    untilReceived: (n) =>
      received.length >= n ? Promise.resolve() : new Promise((resolve) => waiting.push({ n, resolve })),
    close,
  }
}

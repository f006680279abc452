// A real HTTP peer on loopback that records every request byte for byte and answers by script.
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { after } from 'node:test'
import { until } from './until.ts'

interface Received {
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
  /** Connections that were made to it. */
  readonly connections: number
  /** Requests that have been read and whose connection or response has not ended. */
  readonly open: number
  /** Keys of requests that came while another one of the same key was open. */
  readonly overlapping: string[]
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

/** Reads the request and writes these bytes as they are, then closes. */
export const raw =
  (text: string): Answer =>
  (_response, _request, socket) =>
    socket.end(text)

/** Reads the request and answers when the promise resolves. */
export const when =
  (moment: Promise<unknown>, answer: Answer = status(200)): Answer =>
  async (response, request, socket) => {
    await moment
    answer(response, request, socket)
  }

/** A moment that the test decides on. */
export function gate(): { readonly opened: Promise<void>; open(): void } {
  let open = () => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return { opened, open }
}

/** A peer that answers 200 until it is told otherwise; on a free port, or where one was before. */
export async function startPeer({ port = 0 } = {}): Promise<Peer> {
  const received: Received[] = []
  const script: Answer[] = []
  let standing: Answer = status(200)
  let connections = 0
  const open = new Map<string, number>()
  const overlapping: string[] = []
  const opened = (key: string, n: number) => open.set(key, (open.get(key) ?? 0) + n)
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
    if ((open.get(one.key) ?? 0) > 0) overlapping.push(one.key)
    opened(one.key, 1)
    if (response.closed) opened(one.key, -1)
    else response.once('close', () => opened(one.key, -1))
    ;(script.shift() ?? standing)(response, one, request.socket)
  })
  server.on('connection', () => connections++)
  server.keepAliveTimeout = 60_000
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  const close = async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }
  after(close)
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hooks`,
    received,
    get connections() {
      return connections
    },
    get open() {
      return [...open.values()].reduce((sum, n) => sum + n, 0)
    },
    overlapping,
    answer(answer) {
      standing = answer
    },
    next(...answers) {
      script.push(...answers)
    },
    untilReceived: async (n) => {
      await until(`${n} requests have been received`, () => received.length >= n)
    },
    close,
  }
}

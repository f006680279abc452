// A receiver in the test's own process: verifies what arrives, records it, recognises keys, and answers by script.
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { isSigned, secretBytes } from '../core/signature.ts'
import type { EndpointGiven } from '../endpoints.ts'
import { type ResolveSecret, resolveSecret } from '../secrets.ts'

export interface ReceivedRequest {
  readonly key: string
  readonly type: string
  /** 1 for the first attempt. */
  readonly attempt: number
  /** Signed with the receiver's secret, and the key the same in both headers. What is not is answered 401. */
  readonly verified: boolean
  readonly headers: Readonly<Record<string, string>>
  /** The bytes as they came. */
  readonly body: Buffer
  /** The body, parsed; undefined when it is no JSON. */
  readonly payload: unknown
}

/** A status; a whole answer; or `lost`: the receiver takes the event, and the connection breaks before its answer. */
export type Reply =
  | number
  | 'lost'
  | { readonly status: number; readonly headers?: Readonly<Record<string, string>>; readonly body?: string }

type Script = Reply | ((request: ReceivedRequest) => Reply | Promise<Reply>)

export interface TestReceiver {
  readonly url: string
  /** Its secret in clear, and the reference that endpoints name it by. */
  readonly secret: string
  readonly secretReference: string
  /** For `createPoller` and `putEndpoint`: knows the secrets of all test receivers of this process, `env:NAME` and `file:/path`. */
  readonly resolveSecret: ResolveSecret
  /** Settings for `putEndpoint(db, receiver.endpoint('clinic'), { resolve: receiver.resolveSecret })`. */
  endpoint(name: string, more?: Partial<EndpointGiven>): EndpointGiven
  /** In the order in which they were read. */
  readonly requests: readonly ReceivedRequest[]
  /** Keys it has taken (2xx or `lost`), each once: one business effect a key, however often it was sent. */
  readonly effects: readonly string[]
  /** Answer like this from now on; 200 at first. */
  answer(reply: Script): void
  /** Answer the next requests like this, one after the other. */
  answerOnce(...replies: Script[]): void
  /** Read requests and answer none; the function returned lets them all go on. */
  hold(): () => void
  /** Resolves when `n` requests have come in all: for a poller that was started. */
  received(n: number): Promise<void>
  /** Forget what came and what was to be answered. */
  reset(): void
  close(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

const SECRETS = new Map<string, string>()

const resolveTestSecret: ResolveSecret = (reference) => SECRETS.get(reference) ?? resolveSecret(reference)

/** Start a receiver on 127.0.0.1 that answers 200 until it is told otherwise. */
export async function startReceiver(): Promise<TestReceiver> {
  const secret = `whsec_${randomBytes(32).toString('base64')}`
  const key = secretBytes(secret) as Buffer
  const requests: ReceivedRequest[] = []
  const effects = new Set<string>()
  const next: Script[] = []
  const waiting: { n: number; resolve: () => void }[] = []
  let standing: Script = 200
  let gate: { readonly opened: Promise<void>; readonly open: () => void } | null = null
  const letGo = () => {
    gate?.open()
    gate = null
  }

  const server = createServer(async (request, response) => {
    const received = await read(request, key)
    if (received === null) return
    requests.push(received)
    // Chosen as it arrives, so that what comes together is answered in the order of the script.
    const script = received.verified ? (next.shift() ?? standing) : 401
    for (const one of waiting) if (requests.length >= one.n) one.resolve()
    await gate?.opened
    try {
      const reply = typeof script === 'function' ? await script(received) : script
      answerWith(response, reply, taken(received.key, reply))
    } catch (error) {
      answerWith(response, { status: 500, body: `the test's answer threw: ${error}` }, false)
    }
  })
  // Longer than a test pauses: a kept connection that we close while a request comes would look like a lost answer.
  server.keepAliveTimeout = 600_000
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const secretReference = `test-receiver:${port}`
  SECRETS.set(secretReference, secret)

  /** Takes the event if this reply does; was it known? */
  function taken(received: string, reply: Reply): boolean {
    const status = typeof reply === 'object' ? reply.status : reply
    if (status !== 'lost' && !(status >= 200 && status < 300)) return false
    const known = effects.has(received)
    effects.add(received)
    return known
  }

  async function close(): Promise<void> {
    letGo()
    SECRETS.delete(secretReference)
    server.closeAllConnections()
    if (server.listening) await new Promise((resolve) => server.close(resolve))
  }

  const url = `http://127.0.0.1:${port}/`
  return {
    url,
    secret,
    secretReference,
    resolveSecret: resolveTestSecret,
    endpoint: (name, more) => ({
      ...{ name, url, secret: secretReference, allowInsecure: true, allowPrivate: true },
      ...more,
    }),
    get requests() {
      return [...requests]
    },
    get effects() {
      return [...effects]
    },
    answer(reply) {
      standing = reply
    },
    answerOnce(...replies) {
      next.push(...replies)
    },
    hold() {
      gate ??= opening()
      return letGo
    },
    received: (n) =>
      requests.length >= n ? Promise.resolve() : new Promise((resolve) => waiting.push({ n, resolve })),
    reset() {
      requests.length = 0
      next.length = 0
      effects.clear()
      standing = 200
      letGo()
    },
    close,
    [Symbol.asyncDispose]: close,
  }
}

/** Null when the connection broke first. */
async function read(request: IncomingMessage, secret: Buffer): Promise<ReceivedRequest | null> {
  const chunks: Buffer[] = []
  try {
    for await (const chunk of request) chunks.push(chunk)
  } catch {
    return null
  }
  const body = Buffer.concat(chunks)
  const headers = request.headers as Record<string, string>
  const id = headers['webhook-id'] ?? ''
  const key = headers['idempotency-key'] ?? ''
  const signed = isSigned([secret], id, headers['webhook-timestamp'] ?? '', body, headers['webhook-signature'] ?? '')
  return {
    key,
    type: headers['outledger-type'] ?? '',
    attempt: Number(headers['outledger-attempt']),
    verified: signed && id === key,
    headers,
    body,
    payload: parsed(body),
  }
}

function parsed(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString())
  } catch {
    return undefined
  }
}

function answerWith(response: ServerResponse, reply: Reply, replayed: boolean): void {
  if (reply === 'lost') {
    response.destroy()
    return
  }
  const { status, headers = {}, body = '' } = typeof reply === 'number' ? { status: reply } : reply
  response.writeHead(status, { ...(replayed ? { 'idempotent-replayed': 'true' } : {}), ...headers }).end(body)
}

function opening(): { readonly opened: Promise<void>; readonly open: () => void } {
  let open = () => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return { opened, open }
}

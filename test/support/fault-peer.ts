// A peer on bare sockets, HTTP or HTTPS, that misbehaves on command and notes byte for byte what it was sent.
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { after } from 'node:test'
import { createSecureContext, TLSSocket } from 'node:tls'
import { type CertificateKind, certificate } from './certificates.ts'
import { type Fault, ok } from './faults.ts'
import { until } from './until.ts'

/** A request, as far as it came. */
export interface Seen {
  /** '' until the head is complete. */
  key: string
  number: number
  /** Which connection of this peer it came on, and as which of its requests: from 2 on the connection was kept. */
  readonly connection: number
  readonly nth: number
  /** With the blank line that ends it, once it is complete. */
  head: string
  /** What has come of it. */
  body: Buffer
  /** Head and body, in bytes. */
  bytes: number
  /** The last byte of the body has come. */
  complete: boolean
}

/** What becomes of a connection: reset-later takes its first bytes, silence never any, so over TLS there is no handshake. */
type Accept = 'normal' | 'reset' | 'reset-later' | 'close' | 'silence'

export interface FaultPeer {
  readonly url: string
  readonly port: number
  /** In the order in which their first bytes came. */
  readonly seen: readonly Seen[]
  /** TCP connections that were accepted, and how many of them are open. */
  readonly connections: number
  readonly open: number
  /** It reads nothing. */
  readonly deaf: boolean
  /** Bytes that came over TCP in all, handshakes included. */
  readonly bytes: number
  /** Bytes that left it in all. */
  readonly bytesSent: number
  of(key: string): Seen[]
  /** Meet the first, second … request with this key so; the last one stands. */
  meet(key: string, ...faults: Fault[]): void
  /** Meet all others so. */
  standing(fault: Fault): void
  /** Asked once for each connection. */
  accept(how: Accept | ((connection: number) => Accept)): void
  /** Resolves when `n` requests have been read in full. */
  untilComplete(n: number): Promise<void>
  close(): Promise<void>
}

/** One that speaks TLS 1.1 at most, which nobody accepts any more. */
type Speaks = CertificateKind | 'old-protocol'

const contextOf = (speaks: Speaks) =>
  speaks === 'old-protocol'
    ? createSecureContext({
        ...certificate('valid'),
        minVersion: 'TLSv1',
        maxVersion: 'TLSv1.1',
        ciphers: 'DEFAULT:@SECLEVEL=0',
      })
    : createSecureContext(certificate(speaks))

const END_OF_HEAD = '\r\n\r\n'
const headerIn = (head: string, name: string) => new RegExp(`^${name}: *"?([^"\r]*)`, 'im').exec(head)?.[1] ?? ''

/** Answers 200 until it is told otherwise. `tls` makes it an HTTPS peer with that certificate. */
export async function startFaultPeer({ tls }: { tls?: Speaks } = {}): Promise<FaultPeer> {
  const context = tls === undefined ? null : contextOf(tls)
  const seen: Seen[] = []
  const met = new Map<string, Fault[]>()
  const sockets = new Set<Socket>()
  let standing: Fault = ok
  let accept: (connection: number) => Accept = () => 'normal'
  let [connections, bytesOfClosed, sentOnClosed] = [0, 0, 0]

  const faultFor = (key: string): Fault => {
    const [first, ...rest] = met.get(key) ?? []
    if (first === undefined) return standing
    if (rest.length > 0) met.set(key, rest)
    return first
  }

  function serve(raw: Socket, socket: Socket, connection: number): void {
    let [nth, rest] = [0, Buffer.alloc(0)]
    let now: { seen: Seen; length: number; fault: Fault | null } | null = null
    let over = false
    socket.on('data', (chunk: Buffer) => {
      rest = Buffer.concat([rest, chunk])
      while (!over && rest.length > 0) {
        if (now === null) {
          const fresh = { key: '', number: 0, connection, nth: ++nth, head: '', body: Buffer.alloc(0), bytes: 0 }
          now = { seen: { ...fresh, complete: false }, length: 0, fault: null }
          seen.push(now.seen)
        }
        const one = now.seen
        if (now.fault === null) {
          // A handshake, say: a server of plain HTTP says that this is none.
          if (!/[A-Z]/.test(String.fromCharCode(rest[0] as number))) {
            over = true
            socket.end('HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n')
            return
          }
          const end = rest.indexOf(END_OF_HEAD)
          one.bytes = end < 0 ? rest.length : end + END_OF_HEAD.length
          if (end < 0) return
          one.head = rest.toString('latin1', 0, one.bytes)
          rest = rest.subarray(one.bytes)
          one.key = headerIn(one.head, 'idempotency-key')
          one.number = Number(headerIn(one.head, 'outledger-attempt'))
          now.length = Number(headerIn(one.head, 'content-length'))
          now.fault = faultFor(one.key)
          if (now.fault.at === 'head') {
            over = true
            socket.pause()
            now.fault.act({ socket, raw, seen: one })
            return
          }
        }
        const more = rest.subarray(0, now.length - one.body.length)
        rest = rest.subarray(more.length)
        one.body = Buffer.concat([one.body, more])
        one.bytes += more.length
        one.complete = one.body.length === now.length
        if (!one.complete) return
        const { fault } = now
        now = null
        fault.act({ socket, raw, seen: one })
      }
    })
  }

  const server = createServer({ allowHalfOpen: true, pauseOnConnect: true }, (raw) => {
    const connection = ++connections
    sockets.add(raw)
    raw.on('error', () => {})
    raw.once('close', () => {
      sockets.delete(raw)
      bytesOfClosed += raw.bytesRead
      sentOnClosed += raw.bytesWritten
    })
    const how = accept(connection)
    if (how === 'reset') raw.resetAndDestroy()
    else if (how === 'close') raw.end()
    else if (how === 'reset-later') raw.once('data', () => raw.resetAndDestroy()).resume()
    if (how !== 'normal') return
    const socket = context === null ? raw : new TLSSocket(raw, { isServer: true, secureContext: context })
    socket.on('error', () => raw.destroy())
    socket.once('end', () => socket.end())
    serve(raw, socket, connection)
    socket.resume()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const close = async () => {
    const closed = new Promise((resolve) => server.close(resolve))
    for (const raw of sockets) raw.destroy()
    await closed
  }
  after(close)
  return {
    url: `${tls === undefined ? 'http' : 'https'}://127.0.0.1:${port}/hooks`,
    port,
    seen,
    get connections() {
      return connections
    },
    get open() {
      return sockets.size
    },
    get deaf() {
      return accept(0) === 'silence'
    },
    get bytes() {
      return [...sockets].reduce((sum, raw) => sum + raw.bytesRead, bytesOfClosed)
    },
    get bytesSent() {
      return [...sockets].reduce((sum, raw) => sum + raw.bytesWritten, sentOnClosed)
    },
    of: (key) => seen.filter((one) => one.key === key),
    meet: (key, ...faults) => void met.set(key, faults),
    standing(fault) {
      standing = fault
    },
    accept(how) {
      accept = typeof how === 'function' ? how : () => how
    },
    untilComplete: async (n) => {
      await until(`${n} requests have been read`, () => seen.filter(({ complete }) => complete).length >= n)
    },
    close,
  }
}

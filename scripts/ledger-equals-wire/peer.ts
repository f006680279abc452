// The other side: one port for each endpoint, real sockets that do every fault, and a list of each request that arrived.
//
// A request is seen when its head has arrived; how much of its body came with it stands beside it. What the peer reads
// no further is still counted, since after its FIN it reads on. Two things alone can keep a request that was sent from
// being seen, and both are the peer's own doing: it resets a connection that it has just accepted, or one on which it
// believes nothing is asked. Bytes that the kernel holds at such a moment are dropped by it, and nobody can ever tell.
// So each of these resets is listed with its endpoint and its time, and excuses one unseen request at the most, for one
// is on the way on a connection at a time. Nothing else is excused.
import { once } from 'node:events'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { createSecureContext, type SecureContext, TLSSocket } from 'node:tls'
import type { Identity } from '../../test/support/certificates.ts'
import { act } from './answers.ts'
import type { Chance } from './chance.ts'
import { Connection, type Seen } from './connection.ts'
import { connectionFaultOf, faultOf, handshakeFaultOf } from './faults.ts'
import type { EndpointPlan } from './plan.ts'

export interface Unread {
  readonly endpoint: string
  /** Epoch milliseconds. */
  readonly at: number
}

const TLS_HANDSHAKE = 0x16

export class Peer {
  readonly seen: Seen[] = []
  readonly unread: Unread[] = []
  /** What arrived and was no request. */
  readonly strays: string[] = []
  /** Faults that requests met. */
  readonly met = new Map<string, number>()
  readonly #chance: Chance
  readonly #servers = new Map<string, Server>()
  readonly #sockets = new Set<Socket>()
  readonly #closed = new Map<string, number>()

  readonly #context: SecureContext

  constructor(chance: Chance, identity: Identity) {
    this.#chance = chance
    this.#context = createSecureContext(identity)
  }

  /** The endpoint's URL; nobody listens yet at one that is closed. */
  async listen({ name, peer }: EndpointPlan): Promise<string> {
    const port = await this.#listen(name, peer, 0)
    if (peer === 'closed') {
      this.#closed.set(name, port)
      await this.#end(this.#servers.get(name) as Server)
    }
    return `${peer === 'tls' ? 'https' : 'http'}://127.0.0.1:${port}/hooks`
  }

  /** Listen at those that were closed. */
  async open(): Promise<void> {
    for (const [name, port] of this.#closed) await this.#listen(name, 'open', port)
    this.#closed.clear()
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    await Promise.all([...this.#servers.values()].map((server) => this.#end(server)))
  }

  async #listen(endpoint: string, peer: EndpointPlan['peer'], port: number): Promise<number> {
    let ordinal = 0
    const server = createServer({ allowHalfOpen: true, noDelay: true }, (raw) => {
      this.#sockets.add(raw)
      raw.once('close', () => this.#sockets.delete(raw))
      raw.on('error', () => {})
      ordinal++
      if (peer === 'tls') this.#shakeHands(raw, endpoint, ordinal)
      else this.#accept(raw, endpoint, ordinal)
    })
    this.#servers.set(endpoint, server)
    server.listen(port, '127.0.0.1')
    await once(server, 'listening')
    return (server.address() as AddressInfo).port
  }

  #accept(socket: Socket, endpoint: string, ordinal: number): void {
    const fault = connectionFaultOf(this.#chance, endpoint, ordinal)
    if (fault !== null) this.#note(fault)
    if (fault === 'rst_at_accept') {
      this.unread.push({ endpoint, at: Date.now() })
      socket.resetAndDestroy()
      return
    }
    const connection = this.#serve(endpoint, socket, socket)
    if (fault === 'fin_at_accept') connection.fin()
  }

  /** Where the handshake fails, what comes is the beginning of one and nothing else. */
  #shakeHands(raw: Socket, endpoint: string, ordinal: number): void {
    const fault = handshakeFaultOf(this.#chance, endpoint, ordinal)
    if (fault === null) {
      this.#serve(endpoint, new TLSSocket(raw, { isServer: true, secureContext: this.#context }), raw)
      return
    }
    this.#note(fault)
    raw.on('end', () => raw.end())
    raw.on('data', (chunk) => {
      if (chunk[0] !== TLS_HANDSHAKE) this.#stray(endpoint, chunk.toString('latin1', 0, 200))
      if (fault === 'handshake_rst') raw.resetAndDestroy()
      else if (fault === 'handshake_fin') raw.end()
      else if (fault === 'handshake_http' && raw.writable)
        raw.end('HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n')
    })
  }

  #serve(endpoint: string, socket: Socket, raw: Socket): Connection {
    const options = {
      endpoint,
      onUnread: () => this.unread.push({ endpoint, at: Date.now() }),
      onHead: (seen: Seen, on: Connection) => {
        this.seen.push(seen)
        this.#note(this.#faultOf(seen))
        act('head', this.#faultOf(seen), this.#chance, seen, on)
      },
      onComplete: (seen: Seen, on: Connection) => act('end', this.#faultOf(seen), this.#chance, seen, on),
      onStray: (text: string) => this.#stray(endpoint, text),
    }
    return new Connection(socket, options, raw)
  }

  #stray(endpoint: string, text: string): void {
    this.strays.push(`${endpoint}: ${JSON.stringify(text)}`)
  }

  #faultOf({ key, number }: Seen) {
    return faultOf(this.#chance, key, number)
  }

  #note(fault: string): void {
    this.met.set(fault, (this.met.get(fault) ?? 0) + 1)
  }

  async #end(server: Server): Promise<void> {
    if (!server.listening) return
    const closed = once(server, 'close')
    server.close()
    await closed
  }
}

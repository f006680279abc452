// A TCP proxy in front of Postgres that does what networks do: refuse, cut, swallow.
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { after } from 'node:test'

export interface Proxy {
  /** The database's URL, through the proxy. */
  readonly url: string
  /** Connections that were asked for, and got through. */
  readonly connections: number
  /** Let everything through again. */
  open(): Promise<void>
  /** Reset all connections and refuse new ones. */
  refuse(): void
  /** Reset all connections; new ones are let through. */
  cut(): void
  /** Keep connections, forward nothing any more: a black hole. */
  swallow(): void
  /** A black hole for those who are connected, and refused to all others: a host that went away and came up without us. */
  vanish(): void
}

export async function startProxy(target: string): Promise<Proxy> {
  const { hostname, port: targetPort } = new URL(target)
  const sockets = new Set<Socket>()
  let swallowing = false
  let connections = 0
  const keep = (socket: Socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    socket.on('error', () => {})
  }
  const forward = (from: Socket, to: Socket) => {
    from.on('data', (chunk) => {
      if (!swallowing) to.write(chunk)
    })
    from.on('end', () => {
      if (!swallowing) to.end()
    })
    from.on('close', () => to.destroy())
  }
  const listen = async (port: number): Promise<Server> => {
    // Half-open, so that a black hole does not even answer the end of a connection.
    const server = createServer({ allowHalfOpen: true }, (inbound) => {
      connections++
      const outbound = connect({ port: Number(targetPort), host: hostname, allowHalfOpen: true })
      for (const socket of [inbound, outbound]) keep(socket)
      forward(inbound, outbound)
      forward(outbound, inbound)
    }).listen(port, '127.0.0.1')
    await once(server, 'listening')
    return server
  }
  let server: Server | null = await listen(0)
  const { port } = server.address() as AddressInfo
  const reset = () => {
    for (const socket of sockets) socket.resetAndDestroy()
  }
  const deafen = () => {
    server?.close()
    server = null
  }
  const refuse = () => {
    deafen()
    reset()
  }
  after(refuse)
  return {
    url: Object.assign(new URL(target), { hostname: '127.0.0.1', port: String(port) }).href,
    get connections() {
      return connections
    },
    async open() {
      swallowing = false
      server ??= await listen(port)
    },
    refuse,
    cut: reset,
    swallow() {
      swallowing = true
    },
    vanish() {
      swallowing = true
      deafen()
    },
  }
}

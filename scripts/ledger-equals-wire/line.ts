// The way to the database, which breaks now and then: a statement is carried out, and its answer is lost.
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

export class Line {
  readonly url: string
  readonly #pairs: ReadonlySet<readonly [Socket, Socket]>
  readonly close: () => void

  private constructor(url: string, pairs: ReadonlySet<readonly [Socket, Socket]>, close: () => void) {
    this.url = url
    this.#pairs = pairs
    this.close = close
  }

  static async to(target: string): Promise<Line> {
    const { hostname, port } = new URL(target)
    const pairs = new Set<readonly [Socket, Socket]>()
    const server = createServer((inbound) => {
      const outbound = connect(Number(port), hostname)
      const pair = [inbound, outbound] as const
      pairs.add(pair)
      for (const [from, to] of [pair, [outbound, inbound]] as const) {
        from.pipe(to)
        from.on('error', () => {})
        from.on('close', () => {
          to.destroy()
          pairs.delete(pair)
        })
      }
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const own = Object.assign(new URL(target), {
      hostname: '127.0.0.1',
      port: String((server.address() as AddressInfo).port),
    })
    const line = new Line(own.href, pairs, () => {
      server.close()
      for (const [inbound] of pairs) inbound.destroy()
    })
    return line
  }

  /** Reset every connection when the database says something next: what it says does not arrive. */
  cut(): void {
    for (const [inbound, outbound] of this.#pairs) {
      outbound.unpipe(inbound)
      outbound.once('data', () => inbound.resetAndDestroy())
    }
  }
}

// Bytes without end that never become a message (a header field, a chunk extension, a reason phrase): the parser reads them all,
// and this process does nothing else meanwhile. No limit on the message stops them, so that the connection is taken down.
import type { Socket } from 'node:net'

/** An answer that keeps to the limits of its head and body is shorter, in whatever chunks it comes. */
const LIMIT_BYTES = 1_048_576

interface Looked {
  /** So much had been written when it had read a limit more than before. */
  written: number
  /** So much had been read by then. */
  read: number
}

export class Sockets {
  readonly #open = new Map<Socket, Looked>()

  get size(): number {
    return this.#open.size
  }

  add(socket: Socket): void {
    this.#open.set(socket, { written: 0, read: 0 })
    socket.once('close', () => this.#open.delete(socket))
  }

  /** Take down those that have read too much since something was written to them. */
  look(): void {
    for (const [socket, last] of this.#open) {
      const { bytesRead } = socket
      if (bytesRead - last.read <= LIMIT_BYTES) continue
      const { bytesWritten } = socket
      // Answers to many requests, as far as is known: the next limit tells.
      if (bytesWritten !== last.written) Object.assign(last, { written: bytesWritten, read: bytesRead })
      else socket.destroy(Object.assign(new Error('a flood'), { code: 'malformed' }))
    }
  }
}

// Bytes without end that never become a message (a header field, a chunk extension, a reason phrase): the parser reads them all,
// and this process does nothing else meanwhile. No limit on the message stops them, so that the connection is taken down.
import type { Socket } from 'node:net'

/** An answer that keeps to the limits of its head and body is shorter, in whatever chunks it comes. */
const LIMIT_BYTES = 1_048_576

interface Reading {
  /** So much had been written when the last request was. */
  written: number
  /** So much had been read by then, or a little later. */
  read: number
}

export class Sockets {
  readonly #open = new Map<Socket, Reading>()

  add(socket: Socket): void {
    this.#open.set(socket, { written: 0, read: 0 })
    socket.once('close', () => this.#open.delete(socket))
  }

  /** Take down those that have read too much since something was written to them. */
  look(): void {
    for (const [socket, last] of this.#open) {
      const { bytesRead, bytesWritten } = socket
      if (bytesWritten !== last.written) {
        last.written = bytesWritten
        last.read = bytesRead
      } else if (bytesRead - last.read > LIMIT_BYTES)
        socket.destroy(Object.assign(new Error('a flood'), { code: 'malformed' }))
    }
  }
}

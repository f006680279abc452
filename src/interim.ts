// A "100 Continue" that nobody waited for: a client has to read on (RFC 9110 §15.2), and undici takes the connection down.
// Told as a 103, which asks for nothing either, it is counted like every other announcement.
import type { Socket } from 'node:net'

const CONTINUE = Buffer.from('HTTP/1.1 100')
const ANNOUNCES = Buffer.from('HTTP/1.1 1')
const THREE = 0x33

/** From now on this socket's reader meets no 100 at the beginning of what has come, nor after other announcements there. */
export function readOverContinue(socket: Socket): void {
  const read: (size?: number) => Buffer | null = socket.read.bind(socket)
  socket.read = (size?: number) => {
    const bytes = read(size)
    // On the hot path: all other answers differ in this one byte.
    if (bytes !== null && bytes[ANNOUNCES.length - 1] === ANNOUNCES[ANNOUNCES.length - 1]) tellAnew(bytes)
    return bytes
  }
}

function tellAnew(bytes: Buffer): void {
  for (let at = 0; startsAt(bytes, ANNOUNCES, at); ) {
    if (startsAt(bytes, CONTINUE, at)) bytes[at + CONTINUE.length - 1] = THREE
    const end = bytes.indexOf('\r\n\r\n', at)
    if (end < 0) return
    at = end + 4
  }
}

const startsAt = (bytes: Buffer, start: Buffer, at: number): boolean =>
  at + start.length <= bytes.length && bytes.compare(start, 0, start.length, at, at + start.length) === 0

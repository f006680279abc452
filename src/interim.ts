// A "100 Continue" that nobody waited for: a client has to read on (RFC 9110 §15.2), and undici takes the connection down.
// Told as a 103, which asks for nothing either, it is counted like every other announcement.
import type { Socket } from 'node:net'

const CONTINUE = 'HTTP/1.1 100'
const INTERIM = /^HTTP\/1\.1 1\d\d/
const { length: LENGTH } = CONTINUE
const THREE = 0x33

/** From now on this socket's reader meets no 100 at the beginning of an answer. */
export function readOverContinue(socket: Socket): void {
  const read: (size?: number) => Buffer | null = socket.read.bind(socket)
  /** So much had been written when the answer to it, the one that is no announcement, began. */
  let answered = -1
  let begun: Buffer | null = null
  socket.read = (size?: number) => {
    for (let chunk = read(size); chunk !== null; chunk = read(size)) {
      if (socket.bytesWritten === answered) return chunk
      const bytes = begun === null ? chunk : Buffer.concat([begun, chunk])
      begun = bytes.length < LENGTH && CONTINUE.startsWith(bytes.toString('latin1')) ? bytes : null
      if (begun !== null) continue
      if (!toldAnew(bytes)) answered = socket.bytesWritten
      return bytes
    }
    return null
  }
}

/** Are these announcements only, as far as they go? */
function toldAnew(bytes: Buffer): boolean {
  for (let at = 0; at >= 0 && at < bytes.length; ) {
    const start = bytes.toString('latin1', at, at + LENGTH)
    if (!INTERIM.test(start)) return false
    if (start === CONTINUE) bytes[at + LENGTH - 1] = THREE
    const end = bytes.indexOf('\r\n\r\n', at)
    at = end < 0 ? end : end + 4
  }
  return true
}

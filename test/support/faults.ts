// What a peer can do to one request, by name: each acts when the head has been read, or when the whole request has.
import type { Socket } from 'node:net'
import { gzipSync } from 'node:zlib'
import type { Seen } from './fault-peer.ts'

interface Wire {
  /** Plain, or TLS over `raw`. */
  readonly socket: Socket
  readonly raw: Socket
  readonly seen: Seen
}

export interface Fault {
  /** At the head nothing more is read afterwards. */
  readonly at: 'head' | 'request'
  act(wire: Wire): void
}

const fault = (act: Fault['act'], at: Fault['at'] = 'request'): Fault => ({ at, act })

const headOf = (code: number | string, headers: Readonly<Record<string, string | number>>) =>
  `HTTP/1.1 ${code} So\r\n${Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('')}\r\n`

/** An answer in order. */
export const answer = (code: number, headers: Readonly<Record<string, string>> = {}, body = ''): Fault =>
  fault(({ socket }) => socket.write(headOf(code, { 'content-length': Buffer.byteLength(body), ...headers }) + body))

export const ok = answer(200)

/** These bytes and then the end of the connection; `open` leaves it open. */
export const raw = (text: string | Buffer, { open = false } = {}): Fault =>
  fault(({ socket }) => (open ? socket.write(text) : socket.end(text)))

/** `Content-Length: 100`, five bytes, FIN. */
export const lyingLength = (code: number) => raw(`${headOf(code, { 'content-length': 100 })}hello`)

export const silence = fault(() => {})
/** Reads no further and never answers. */
export const deaf = fault(() => {}, 'head')
export const reset = fault((wire) => wire.raw.resetAndDestroy())
export const resetDuring = fault((wire) => wire.raw.resetAndDestroy(), 'head')
export const fin = fault(({ socket }) => socket.end())
export const finDuring = fault(({ socket }) => socket.end(), 'head')
/** Answers before the request has been read, and closes. */
export const early = (code: number) => fault(({ socket }) => socket.end(headOf(code, { 'content-length': 0 })), 'head')
/** The head of an answer, and a reset right after it. */
export const resetAfterHead = (code: number): Fault =>
  fault((wire) => wire.socket.write(headOf(code, { 'content-length': 100 }), () => wire.raw.resetAndDestroy()))

export const hintsThen200 = raw(
  'HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n',
  {
    open: true,
  },
)
export const hintsOnly = raw('HTTP/1.1 103 Early Hints\r\n\r\n')
/** One after the other, each in a packet of its own. */
const pieces = (...texts: string[]): Fault =>
  fault(async ({ socket }) => {
    for (const text of texts) {
      socket.write(text)
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
  })

const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n'
const CONTINUE = 'HTTP/1.1 100 Continue\r\n\r\n'
export const continueThen200 = raw(`${CONTINUE}${OK}`, { open: true })
export const continueInPieces = pieces(...((CONTINUE + OK).match(/[\s\S]{1,20}/g) ?? []))
export const continueWithHeaders = pieces(
  `HTTP/1.1 100 Go on\r\nx-a: b\r\n\r\n${CONTINUE}`,
  'HTTP/1.1 103 X\r\n\r\n',
  OK,
)
export const continueOnly = raw('HTTP/1.1 100 Continue\r\n\r\n')
/** Nobody asked for it. */
export const upgrade = raw('HTTP/1.1 101 Switching\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n', { open: true })
export const halfHead = raw('HTTP/1.1 200 OK\r\nx: ')
export const notHttp = raw('ICY 200 OK\r\n\r\n')
export const badStatus = (status: string) => raw(headOf(status, { 'content-length': 0 }))
export const lengthAndChunked = raw(
  `${headOf(200, { 'content-length': 5, 'transfer-encoding': 'chunked' })}5\r\nhello\r\n0\r\n\r\n`,
)
export const truncatedChunked = (code: number) => raw(`${headOf(code, { 'transfer-encoding': 'chunked' })}a\r\nhel`)
export const hugeHeaders = raw(headOf(200, { 'x-huge': 'h'.repeat(300_000), 'content-length': 0 }))

/** Until the connection ends: `next` gives what is written at each interval. */
const dripping = (first: string, next: string, intervalMs: number): Fault =>
  fault(({ socket }) => {
    socket.write(first)
    const timer = setInterval(() => socket.write(next), intervalMs)
    socket.once('close', () => clearInterval(timer))
  })

/** One byte of the body at a time, for ever. */
export const drip = (code: number, intervalMs = 20) =>
  dripping(headOf(code, { 'transfer-encoding': 'chunked' }), '1\r\nx\r\n', intervalMs)
/** One byte of the head at a time, for ever. */
export const dripHead = (intervalMs = 20) => dripping('HTTP/1.1 200 OK\r\nx: ', 'y', intervalMs)

/** A body of so many bytes, no faster than it is read. */
export const bodyOf = (code: number, bytes: number): Fault =>
  fault(({ socket }) => {
    const chunk = Buffer.alloc(65_536, 'x')
    let left = bytes
    const pour = () => {
      while (left > 0) {
        const part = chunk.subarray(0, left)
        left -= part.length
        if (socket.write(part)) continue
        socket.once('drain', pour)
        return
      }
    }
    socket.write(headOf(code, { 'content-length': bytes }))
    pour()
  })

/** After `first` the same bytes without end, as fast as they are read. */
export const flood = (first: string, piece: string): Fault =>
  fault(({ socket }) => {
    const block = piece.repeat(Math.ceil(65_536 / piece.length))
    const pour = () => {
      while (!socket.destroyed) if (!socket.write(block)) return void socket.once('drain', pour)
    }
    socket.write(first)
    pour()
  })

let bomb: Buffer | undefined
/** 50 MB of zeros in 50 KB, though identity was asked for. */
export const gzipBomb = (code: number): Fault =>
  fault(({ socket }) => {
    bomb ??= gzipSync(Buffer.alloc(50_000_000))
    socket.write(headOf(code, { 'content-encoding': 'gzip', 'content-length': bomb.length }))
    socket.write(bomb)
  })

/** Sends on to another place. */
export const redirect = (code: number, location: string) => answer(code, { location })

// One connection as the peer has it: bytes become requests, and every byte that arrived is accounted for.
import { createHash, type Hash } from 'node:crypto'
import type { Socket } from 'node:net'

/** A request whose head arrived; its body perhaps not. */
export interface Seen {
  readonly endpoint: string
  readonly key: string
  readonly number: number
  /** Of the body. */
  bytes: number
  readonly hash: Hash
  complete: boolean
  /** Status of the response head that was handed to the socket as a whole; null: there was none. */
  answered: number | null
}

export interface ConnectionOptions {
  readonly endpoint: string
  readonly onHead: (seen: Seen, connection: Connection) => void
  readonly onComplete: (seen: Seen, connection: Connection) => void
  /** Bytes that are no request. */
  readonly onStray: (text: string) => void
  /** The peer has reset it while a request may have been on its way that nobody will ever read. */
  readonly onUnread: () => void
}

const HEAD_END = '\r\n\r\n'
const SHOWN = 200

const KEY_FORMATS = [(key: string) => key, (key: string) => `"${key}"`]

export class Connection {
  readonly #socket: Socket
  readonly #raw: Socket
  readonly #options: ConnectionOptions
  #pending: Buffer = Buffer.alloc(0)
  #reading: { seen: Seen; left: number } | null = null
  #unasked: number | null = null

  /** `raw`: the TCP connection below `socket`, if that speaks TLS. */
  constructor(socket: Socket, options: ConnectionOptions, raw = socket) {
    this.#socket = socket
    this.#raw = raw
    this.#options = options
    socket.on('data', (chunk) => this.#take(chunk))
    socket.on('end', () => socket.end())
    // What the other side does to a connection shows in its ledger.
    socket.on('error', () => {})
    socket.on('close', () => {
      // The beginning of a head.
      if (this.#pending.length > 0) this.#stray(this.#pending)
    })
  }

  /** Bytes as they are; none after its FIN. */
  write(text: string): void {
    if (this.#socket.writable) this.#socket.write(text)
  }

  /** A complete response head, and whatever follows it. */
  answer(
    seen: Seen,
    status: number,
    { head = '', body = '', length = Buffer.byteLength(body), chunks = '' } = {},
  ): void {
    if (this.#socket.writable) seen.answered = status
    const framing = chunks === '' ? `content-length: ${length}` : 'transfer-encoding: chunked'
    this.write(`HTTP/1.1 ${status} Status\r\n${framing}\r\n${head}\r\n${body}${chunks}`)
  }

  /** An answer that nobody asked for, and the end: what still arrives afterwards has only this one to take for its own. */
  unasked(status: number): void {
    if (!this.#socket.writable || this.#reading !== null) return
    this.#unasked = status
    this.write(`HTTP/1.1 ${status} Status\r\ncontent-length: 0\r\nconnection: close\r\n\r\n`)
    this.fin()
  }

  /** The end of what the peer says; it goes on reading, so that nothing which still arrives escapes the count. */
  fin(): void {
    this.#socket.end()
  }

  /** In the middle of an exchange: the other side waits for its answer and sends nothing new. */
  reset(): void {
    this.#raw.resetAndDestroy()
  }

  /** While nothing is asked, as far as the peer has read. */
  resetIdle(): void {
    if (this.#raw.destroyed) return
    if (this.#reading === null) this.#options.onUnread()
    this.#raw.resetAndDestroy()
  }

  get open(): boolean {
    return this.#socket.writable
  }

  #take(chunk: Buffer): void {
    this.#pending = this.#pending.length === 0 ? chunk : Buffer.concat([this.#pending, chunk])
    while (this.#pending.length > 0) {
      if (this.#reading !== null) this.#readBody(this.#reading)
      else if (!this.#readHead()) return
    }
  }

  #readHead(): boolean {
    const end = this.#pending.indexOf(HEAD_END)
    if (end < 0) return false
    const [line = '', ...lines] = this.#pending.toString('latin1', 0, end).split('\r\n')
    const headers = new Map(
      lines.map((text) => [text.slice(0, text.indexOf(':')).toLowerCase(), text.replace(/^[^:]*: ?/, '')]),
    )
    const key = headers.get('webhook-id') ?? ''
    const number = Number(headers.get('outledger-attempt'))
    const left = Number(headers.get('content-length'))
    if (
      line !== 'POST /hooks HTTP/1.1' ||
      key === '' ||
      !KEY_FORMATS.some((format) => format(key) === headers.get('idempotency-key')) ||
      !(number > 0) ||
      !(left > 0)
    ) {
      this.#stray(this.#pending)
      this.#raw.resetAndDestroy()
      return false
    }
    this.#pending = this.#pending.subarray(end + HEAD_END.length)
    const hash = createHash('sha256')
    const seen = {
      endpoint: this.#options.endpoint,
      key,
      number,
      bytes: 0,
      hash,
      complete: false,
      answered: this.#unasked,
    }
    this.#reading = { seen, left }
    // Before the body is looked at, though it may have come with the head.
    this.#options.onHead(seen, this)
    return true
  }

  #readBody(reading: { seen: Seen; left: number }): void {
    const part = this.#pending.subarray(0, reading.left)
    this.#pending = this.#pending.subarray(part.length)
    reading.seen.hash.update(part)
    reading.seen.bytes += part.length
    reading.left -= part.length
    if (reading.left > 0) return
    reading.seen.complete = true
    this.#reading = null
    this.#options.onComplete(reading.seen, this)
  }

  #stray(bytes: Buffer): void {
    this.#options.onStray(bytes.toString('latin1', 0, SHOWN))
    this.#pending = Buffer.alloc(0)
  }
}

// How the peer does each fault to a connection, once the request's head has arrived or once its body has.
import { between, type Chance, oneOf } from './chance.ts'
import type { Connection, Seen } from './connection.ts'
import type { Fault } from './faults.ts'

interface Call {
  readonly connection: Connection
  readonly seen: Seen
  /** A draw of this request's own. */
  readonly draw: (word: string) => number
}

type Answer = (call: Call) => void

const DRIP_MS = 20
/** As long as a deadline and a little more. */
const AROUND_MS = 600
const IDLE_MS = 5
const LONG_BYTES = 40_000
const HUGE_BYTES = 20_000

/** Done as soon as the head is there; the body is read on, unless the connection ends. */
const AT_HEAD: Partial<Record<Fault, Answer>> = {
  rst_while_reading: ({ connection }) => connection.reset(),
  fin_while_reading: ({ connection }) => connection.fin(),
  early_200: ({ connection, seen }) => connection.answer(seen, 200),
}

const status =
  (statuses: readonly number[], head = ''): Answer =>
  ({ connection, seen, draw }) =>
    connection.answer(seen, oneOf(draw('status'), statuses), { head })

const raw =
  (text: string, end: 'fin' | 'reset' | null = null): Answer =>
  ({ connection }) => {
    connection.write(text)
    if (end !== null) connection[end]()
  }

const HALF_HEAD = 'HTTP/1.1 200 OK\r\ncontent-len'
const EARLY_HINTS = 'HTTP/1.1 103 Early Hints\r\nlink: </a>; rel=preload\r\n\r\n'

const AT_END: Partial<Record<Fault, Answer>> = {
  none: status([200, 201, 202, 204]),
  http_5xx: status([500, 501, 502, 503, 504, 507, 599]),
  http_4xx_passing: status([408, 421, 425]),
  http_odd: status([600, 799, 999]),
  http_409: status([409]),
  retry_after: ({ connection, seen, draw }) =>
    connection.answer(seen, oneOf(draw('status'), [429, 503]), {
      head: `retry-after: ${oneOf(draw('after'), ['0', '1', '-5', '1.5', 'never'])}\r\n`,
    }),
  redirect: status([302, 303, 307], 'location: http://127.0.0.1:1/elsewhere\r\n'),
  rejected: status([400, 401, 403, 404, 413, 422, 451]),
  gone: status([410]),
  moved: status([301, 308], 'location: http://127.0.0.1:1/elsewhere\r\n'),
  silence: () => {},
  rst_after_reading: ({ connection }) => connection.reset(),
  fin_after_reading: ({ connection }) => connection.fin(),
  rst_within_head: raw(HALF_HEAD, 'reset'),
  fin_within_head: raw(HALF_HEAD, 'fin'),
  announced_then_fin: raw(EARLY_HINTS, 'fin'),
  switching: raw('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: other\r\n\r\n'),
  malformed: raw('HTTP/1.1 2OO OK\r\ncontent-length: 0\r\n\r\n'),
  two_lengths: raw('HTTP/1.1 200 OK\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n'),
  huge_head: raw(`HTTP/1.1 200 OK\r\ncontent-length: 0\r\nx-huge: ${'x'.repeat(HUGE_BYTES)}\r\n\r\n`),
  announced_then_200: ({ connection, seen }) => {
    connection.write(EARLY_HINTS)
    connection.answer(seen, 200)
  },
  around_the_deadline: ({ connection, seen, draw }) => {
    setTimeout(() => connection.open && connection.answer(seen, 200), between(draw('ms'), 0, AROUND_MS))
  },
  cut_short_by_fin: ({ connection, seen }) => {
    connection.answer(seen, 200, { body: 'short', length: 100 })
    connection.fin()
  },
  cut_short_by_rst: ({ connection, seen }) => {
    connection.answer(seen, 200, { body: 'short', length: 100 })
    connection.reset()
  },
  drip: ({ connection, seen }) => {
    connection.answer(seen, 200, { length: LONG_BYTES })
    const drip = setInterval(() => (connection.open ? connection.write('.') : clearInterval(drip)), DRIP_MS)
  },
  long_body: ({ connection, seen }) => connection.answer(seen, 200, { body: 'x'.repeat(LONG_BYTES) }),
  chunked: ({ connection, seen }) => connection.answer(seen, 200, { chunks: '5\r\nhello\r\n0\r\n\r\n' }),
  closing: status([200], 'connection: close\r\n'),
  fin_when_idle: ({ connection, seen, draw }) => {
    connection.answer(seen, 200)
    setTimeout(() => connection.fin(), between(draw('ms'), 0, IDLE_MS))
  },
  // As servers do that give an idle connection up.
  http_408_when_idle: ({ connection, seen, draw }) => {
    connection.answer(seen, 200)
    setTimeout(() => connection.unasked(408), between(draw('ms'), 0, IDLE_MS))
  },
  rst_when_idle: ({ connection, seen, draw }) => {
    connection.answer(seen, 200)
    setTimeout(() => connection.resetIdle(), between(draw('ms'), 0, IDLE_MS))
  },
}

/** `moment`: the head has arrived, or all of it has. */
export function act(moment: 'head' | 'end', fault: Fault, chance: Chance, seen: Seen, connection: Connection): void {
  const draw = (word: string) => chance('answer', seen.key, seen.number, word)
  const answers = moment === 'head' ? AT_HEAD : AT_END
  answers[fault]?.({ connection, seen, draw })
}

// Two lists, what the peer saw and what the ledger says, and every way in which they may not differ.
import { createHash } from 'node:crypto'
import type { Seen } from './connection.ts'
import type { Unread } from './peer.ts'

/** A row of the ledger. */
export interface Row {
  readonly endpoint: string
  readonly key: string
  readonly number: number
  readonly requestSent: boolean | null
  readonly outcome: string
  readonly reason: string | null
  readonly phase: string | null
  readonly httpStatus: number | null
  /** Epoch milliseconds. */
  readonly startedAt: number
  readonly finishedAt: number
}

/** How a delivery ended. */
export interface Receipt {
  readonly key: string
  readonly attempts: number
  readonly certainty: string
}

export interface Lists {
  readonly seen: readonly Seen[]
  readonly unread: readonly Unread[]
  readonly strays: readonly string[]
  readonly rows: readonly Row[]
  readonly receipts: readonly Receipt[]
  /** The bytes that were enqueued under this key; null: none were. */
  readonly bodyOf: (key: string) => Buffer | null
  /** So much later than the truth may the instants of a row be: the database makes them when a statement reaches it. */
  readonly slackMs: number
}

const nameOf = ({ key, number }: { key: string; number: number }) => `${key} #${number}`

function grouped<T>(all: readonly T[], by: (one: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>()
  for (const one of all) {
    const group = groups.get(by(one))
    if (group === undefined) groups.set(by(one), [one])
    else group.push(one)
  }
  return groups
}

/** How a request ends whose connection the peer has reset, or whose poller was told to stop before it noticed. */
const RESET_REASON = /^(?:request_(?:ECONNRESET|EPIPE|closed)|shutdown)$/

/** Durations are whole milliseconds, and clocks are read one after the other. */
const ROUNDING_MS = 5

/** One line for each difference; none: the ledger equals the wire. */
export function differences(lists: Lists): string[] {
  const requests = grouped(lists.seen, nameOf)
  const rows = new Map(lists.rows.map((row) => [nameOf(row), row]))
  return [
    ...lists.strays.map((text) => `no request: ${text}`),
    ...[...requests].flatMap(([name, [first, ...more]]) => [
      ...more.map(() => `${name}: on the wire ${more.length + 1} times`),
      ...(first === undefined ? [] : ofRequest(name, first, rows.get(name), lists)),
    ]),
    ...lists.rows.flatMap((row) => ofRow(nameOf(row), row, requests.has(nameOf(row)))),
    ...unexcused(
      lists.rows.filter((row) => row.requestSent && !requests.has(nameOf(row))),
      lists,
    ),
    ...sequences(lists),
  ]
}

function ofRequest(name: string, seen: Seen, row: Row | undefined, { bodyOf }: Lists): string[] {
  const body = bodyOf(seen.key)
  const part = body?.subarray(0, seen.bytes)
  const digest = part && createHash('sha256').update(part).digest('hex')
  const same = digest === seen.hash.copy().digest('hex') && (!seen.complete || part?.length === body?.length)
  return [
    ...(same ? [] : [`${name}: ${seen.bytes} bytes arrived that are not those of the delivery`]),
    ...(row === undefined ? [`${name}: on the wire and not in the ledger`] : []),
    ...(row === undefined || row.httpStatus === null || row.httpStatus === seen.answered
      ? []
      : [`${name}: answered with ${seen.answered ?? 'nothing'}, and the ledger says ${row.httpStatus}`]),
  ]
}

function ofRow(name: string, row: Row, onWire: boolean): string[] {
  const said = `${row.outcome} · ${row.reason} · ${row.phase}`
  return [
    ...(row.requestSent === false && onWire ? [`${name}: the ledger says it was not sent (${said}), and it was`] : []),
    ...((row.requestSent === null) === (row.reason === 'worker_lost')
      ? []
      : [`${name}: request_sent is ${row.requestSent} with ${said}`]),
  ]
}

/** Sent and not seen: only where the peer reset a connection unread at that time, one for each, and nothing was answered. */
function unexcused(unseen: readonly Row[], { unread, slackMs }: Lists): string[] {
  const left = new Set(unread.toSorted((a, b) => a.at - b.at))
  return unseen
    .toSorted((a, b) => a.finishedAt - b.finishedAt)
    .flatMap((row) => {
      const { endpoint, startedAt, finishedAt, httpStatus, outcome, phase, reason } = row
      const mayBe = httpStatus === null && outcome === 'unknown' && RESET_REASON.test(reason ?? '')
      const excuse = [...left].find(
        (one) => one.endpoint === endpoint && one.at >= startedAt - slackMs && one.at <= finishedAt + ROUNDING_MS,
      )
      if (mayBe && excuse !== undefined) {
        left.delete(excuse)
        return []
      }
      return [
        `${nameOf(row)}: the ledger says it was sent (${outcome} · ${reason} · ${phase}), and the peer has not seen it`,
      ]
    })
}

/** Numbers without a gap up to the receipt's, and a delivered one was answered with a 2xx. */
function sequences({ rows, receipts, seen }: Lists): string[] {
  const numbers = grouped(rows, ({ key }) => key)
  const accepted = new Set(
    seen.filter(({ answered }) => answered !== null && answered >= 200 && answered <= 299).map(({ key }) => key),
  )
  return receipts.flatMap(({ key, attempts, certainty }) => {
    const found = (numbers.get(key) ?? []).map(({ number }) => number).sort((a, b) => a - b)
    const wanted = Array.from({ length: attempts }, (_, i) => i + 1)
    return [
      ...(String(found) === String(wanted)
        ? []
        : [`${key}: ${attempts} attempts were made, and the ledger has ${found}`]),
      ...(certainty === 'delivered' && !accepted.has(key) ? [`${key}: delivered, and the peer never said so`] : []),
    ]
  })
}

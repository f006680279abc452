// How verbs print: aligned text, colour and cut cells only on a terminal, one line of JSON where asked.

export interface Screen {
  readonly tty: boolean
  readonly width: number
  readonly colour: boolean
  print(text: string): void
}

interface Stream {
  readonly isTTY?: boolean
  readonly columns?: number
  write(text: string): unknown
}

export function screenOf(stream: Stream, env: Readonly<Record<string, string | undefined>> = process.env): Screen {
  const tty = stream.isTTY === true
  const forced = (env.FORCE_COLOR ?? '0') !== '0'
  return {
    tty,
    width: stream.columns ?? 80,
    colour: !env.NO_COLOR && env.TERM !== 'dumb' && (tty || forced),
    print: (text) => stream.write(`${text}\n`),
  }
}

const CODES = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33 } as const
export type Colour = keyof typeof CODES

export const paint = ({ colour }: Screen, name: Colour | undefined, text: string): string =>
  colour && name !== undefined && text !== '' ? `\x1b[${CODES[name]}m${text}\x1b[0m` : text

/** The answer of a verb: `value` under --json, else what `text` makes of it. */
export function answer(screen: Screen, { json }: { json: boolean }, value: unknown, text: () => string): void {
  screen.print(json ? JSON.stringify(value) : text())
}

// What others wrote must not steer the terminal: escape sequences, line ends and text that runs backwards.
const STEERING = /[\p{Cc}\p{Zl}\p{Zp}\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu

export const harmless = (text: string): string => text.replace(STEERING, '\ufffd')

export type Cell = string | number | null | undefined

export interface Column<T> {
  readonly title: string
  readonly of: (row: T) => Cell
  readonly right?: boolean
  /** Never cut: half a time or a number says something else. */
  readonly whole?: boolean
  readonly colour?: (row: T) => Colour | undefined
}

const GAP = 2
/** No column of text gets narrower than this to fit the screen. */
const NARROW = 12

/** Aligned lines under titles. Columns that are empty in every row are left out; on a terminal the widest give way. */
export function table<T>(screen: Screen, columns: readonly Column<T>[], rows: readonly T[]): string {
  const shown = (cell: Cell) => harmless(String(cell ?? ''))
  const filled = columns
    .map((column) => ({ column, cells: rows.map((row) => shown(column.of(row))) }))
    .filter(({ cells }) => cells.some((cell) => cell !== ''))
  const widths = filled.map(({ column, cells }) => Math.max(column.title.length, ...cells.map((cell) => cell.length)))
  if (screen.tty)
    fit(widths, { room: screen.width - GAP * (widths.length - 1), whole: filled.map((one) => isWhole(one.column)) })
  const line = (texts: readonly string[], colours: readonly (Colour | undefined)[]) =>
    texts
      .map((text, i) => {
        const width = widths[i] as number
        const cut = text.length > width ? `${text.slice(0, width - 1)}…` : text
        const last = i === texts.length - 1
        const pad = ' '.repeat(width - cut.length)
        const painted = paint(screen, colours[i], cut)
        return filled[i]?.column.right ? pad + painted : last ? painted : painted + pad
      })
      .join(' '.repeat(GAP))
      .trimEnd()
  const head = line(
    filled.map(({ column }) => column.title),
    filled.map(() => 'dim'),
  )
  const body = rows.map((row, r) =>
    line(
      filled.map(({ cells }) => cells[r] as string),
      filled.map(({ column }) => column.colour?.(row)),
    ),
  )
  return [head, ...body].join('\n')
}

const isWhole = <T>({ right, whole }: Column<T>): boolean => right === true || whole === true

function fit(widths: number[], { room, whole }: { room: number; whole: readonly boolean[] }): void {
  for (let over = widths.reduce((a, b) => a + b, 0) - room; over > 0; over--) {
    const soft = widths.map((width, i) => (whole[i] ? 0 : width))
    const widest = soft.indexOf(Math.max(...soft))
    if ((soft[widest] as number) <= NARROW) return
    widths[widest] = (soft[widest] as number) - 1
  }
}

/** `label  value` lines, aligned; what is null or empty is left out. */
export function facts(screen: Screen, pairs: readonly (readonly [label: string, value: Cell])[]): string {
  const filled = pairs.filter(([, value]) => value !== null && value !== undefined && value !== '')
  const width = Math.max(...filled.map(([label]) => label.length)) + GAP
  return filled.map(([label, value]) => paint(screen, 'dim', label.padEnd(width)) + harmless(String(value))).join('\n')
}

/** `2026-11-30T22:15:04.123456Z` for people: to the millisecond, in UTC. */
export const instantText = (iso: string): string => iso.replace('T', ' ').replace(/(\.\d{3})\d*Z$/, '$1Z')

/** The same to the second. */
export const secondText = (iso: string): string => instantText(iso).replace(/\.\d+Z$/, 'Z')

const UNITS: readonly (readonly [unit: string, ms: number])[] = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1_000],
]

/** `850 ms`, `4.2 s`, `17 min 3 s`, `3 d 4 h`: the two largest units. */
export function durationText(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`
  if (ms < 10_000) return `${(Math.floor(ms / 100) / 10).toFixed(1)} s`
  const first = UNITS.findIndex(([, size]) => ms >= size)
  const [unit, size] = UNITS[first] as (typeof UNITS)[number]
  const next = UNITS[first + 1]
  const rest = next === undefined ? 0 : Math.floor((ms % size) / next[1])
  return `${Math.floor(ms / size)} ${unit}${next !== undefined && rest > 0 ? ` ${rest} ${next[0]}` : ''}`
}

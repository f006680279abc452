// Markdown tables from rows of cells, and the flags and values of options as cells.
import { flagOf } from '../../src/cli/usage.ts'
import type { OptionSpec } from '../../src/core/option.ts'
import type { OptionTable } from '../../src/options.ts'

export const code = (text: string): string => `\`${text}\``

/** A bar would end the cell, and what looks like a tag would vanish. */
const cell = (text: string): string =>
  text
    .split(/(`[^`]*`)/)
    .map((part) => (part.startsWith('`') ? part : part.replaceAll('<', '&lt;')))
    .join('')
    .replaceAll('|', '\\|')

export function table(titles: readonly string[], rows: readonly (readonly string[])[]): string {
  if (rows.length === 0) throw new Error(`nothing stands under ${titles.join(', ')}`)
  const line = (cells: readonly string[]) => `| ${cells.map(cell).join(' | ')} |`
  return [line(titles), `|${' --- |'.repeat(titles.length)}`, ...rows.map(line)].join('\n')
}

/** Folded away: a reader opens what is looked for. */
export const folded = (summary: string, text: string): string =>
  `<details>\n<summary>${summary}</summary>\n\n${text}\n\n</details>`

const UNITS = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
  ['second', 1_000],
] as const

/** `300,000 (5 minutes)`: milliseconds as people read them. */
function number(name: string, value: number): string {
  const digits = value.toLocaleString('en')
  const unit = name.endsWith('Ms') ? UNITS.find(([, ms]) => value >= ms && value % ms === 0) : undefined
  if (unit === undefined) return digits
  const count = value / unit[1]
  return `${digits} (${count} ${unit[0]}${count === 1 ? '' : 's'})`
}

const defaultOf = (name: string, { default: value }: OptionSpec): string =>
  value === undefined
    ? '**required**'
    : value === null
      ? '–'
      : typeof value === 'number'
        ? number(name, value)
        : code(String(value))

function rangeOf(name: string, { type, min, max, oneOf }: OptionSpec): string {
  if (oneOf !== undefined) return oneOf.map(code).join(', ')
  if (type === 'boolean' || type === 'string' || min === undefined || max === undefined) return type
  return `${type === 'number' ? 'number, ' : ''}${number(name, min)} … ${number(name, max)}`
}

/** One row per option: name, flag, what it may be, default, meaning. */
export const optionRows = (options: OptionTable, flags: (name: string) => string = flag): string[][] =>
  Object.entries<OptionSpec>(options).map(([name, spec]) => [
    code(name),
    flags(name),
    rangeOf(name, spec),
    defaultOf(name, spec),
    spec.doc,
  ])

export const flag = (name: string): string => code(`--${flagOf(name)}`)

export const OPTION_TITLES = ['option', 'flag', 'value', 'default', 'meaning']

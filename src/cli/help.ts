// What --help prints, made from the table of verbs.
import type { OptionSpec } from '../core/option.ts'
import { VERSION } from '../version.ts'
import { paint, type Screen } from './print.ts'
import { flagOf, withFlags } from './usage.ts'
import { COMMON, EXITS, VERBS, type Verb } from './verbs.ts'

/** `outledger endpoint put NAME [options]` */
export const usageOf = ({ name, takes, options }: Verb): string =>
  ['outledger', name, takes, Object.keys(options).length > 0 && '[options]'].filter(Boolean).join(' ')

/** All verbs, or those whose name begins with `group`. */
export function helpOfAll(screen: Screen, group = ''): string {
  const verbs: readonly Verb[] = VERBS.filter(({ name }) => group === '' || name.startsWith(`${group} `))
  const lines = verbs.map(({ name, takes, summary }): [string, string] => [
    takes === undefined ? name : `${name} ${takes}`,
    summary,
  ])
  const exits = Object.values(EXITS).map(([code, meaning]) => `${code} ${meaning}`)
  return [
    `${paint(screen, 'bold', `outledger ${VERSION}`)}: transactional outbox for Postgres`,
    '',
    ...heading(screen, 'outledger VERB [options]'),
    ...pairs(screen, lines),
    '',
    ...wrapped('DATABASE_URL or --database-url names the database.', room(screen)),
    ...wrapped('"outledger VERB --help" tells more, with examples.', room(screen)),
    ...wrapped(`Exit codes: ${exits.join(', ')}.`, room(screen)),
  ].join('\n')
}

export function helpOf(screen: Screen, verb: Verb): string {
  const options = Object.entries<OptionSpec>(verb.options).map(([name, spec]): [string, string] => [
    `--${flagOf(name)}${placeholderOf(spec)}`,
    withFlags(spec.doc, verb.options) + defaultOf(spec),
  ])
  const common = Object.entries(COMMON).map(([flag, doc]): [string, string] => [`--${flag}`, doc])
  const about = `${verb.summary[0]?.toUpperCase()}${verb.summary.slice(1)}. ${verb.more ?? ''}`.trim()
  return [
    paint(screen, 'bold', usageOf(verb)),
    ...wrapped(about, room(screen)),
    '',
    ...heading(screen, 'Examples'),
    ...verb.examples.map((example) => `  ${example}`),
    '',
    ...heading(screen, 'Options'),
    ...pairs(screen, [...options, ...common]),
  ].join('\n')
}

const heading = (screen: Screen, text: string): string[] => [paint(screen, 'dim', text)]

function placeholderOf({ type, oneOf }: OptionSpec): string {
  if (type === 'boolean') return ''
  if (type !== 'string') return ' N'
  const words = oneOf?.join('|') ?? ''
  return words !== '' && words.length <= 12 ? ` ${words}` : ' TEXT'
}

function defaultOf({ type, default: value, oneOf }: OptionSpec): string {
  const words = oneOf !== undefined && oneOf.join('|').length > 12 ? `: ${oneOf.join(', ')}` : ''
  const plain = value === null || (type === 'boolean' && value === false)
  return words + (value === undefined ? ' (required)' : plain ? '' : ` (default ${value})`)
}

/** Lines for people are not longer than this, however wide the terminal. */
const room = ({ width }: Screen) => Math.max(60, Math.min(width, 110))

function pairs(screen: Screen, lines: readonly (readonly [left: string, right: string])[]): string[] {
  const left = Math.max(...lines.map(([text]) => text.length)) + 4
  return lines.flatMap(([name, doc]) =>
    wrapped(doc, room(screen) - left).map((line, i) => (i === 0 ? `  ${name}`.padEnd(left) : ' '.repeat(left)) + line),
  )
}

function wrapped(text: string, width: number): string[] {
  const lines: string[] = []
  for (const word of text.split(' ')) {
    const last = lines.at(-1)
    if (last !== undefined && last.length + 1 + word.length <= width) lines.splice(-1, 1, `${last} ${word}`)
    else lines.push(word)
  }
  return lines
}

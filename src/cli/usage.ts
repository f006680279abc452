// From argv to the options of one verb: the flags come from the option tables, so they stand nowhere twice.
import { parseArgs } from 'node:util'
import { databaseUrlProblem } from '../core/database-url.ts'
import { didYouMean } from '../core/option.ts'
import type { OptionTable } from '../options.ts'
import type { Verb } from './verbs.ts'

/** The command line itself is wrong. */
export class UsageError extends Error {}

export const flagOf = (name: string): string => name.replace(/[A-Z]/g, (c) => `-${c.toLowerCase()}`)

export interface Parsed {
  readonly json: boolean
  /** The argument before the options; empty for a verb that takes none. */
  readonly subject: string
  /** Values under their option names, of the table's types, null for `--no-…`; `databaseUrl` apart. */
  readonly values: Record<string, string | number | boolean | null>
  readonly databaseUrl: string | undefined
}

const COMMON = ['help', 'json', 'database-url']

/** Every verb knows --help, --json and --database-url besides its own options. */
export function parse(args: readonly string[], verb: Verb): Parsed {
  const flags = new Map(Object.entries(verb.options).map(([name, spec]) => [flagOf(name), { name, spec }]))
  refuseUnknown(args, [...flags.keys(), ...COMMON])
  const options = Object.fromEntries([...flags].map(([flag, { spec }]) => [flag, typeOf(spec.type)] as const))
  // Known under its own name, --no-max-attempts passes parseArgs, which then takes it for the negation that it is.
  for (const [flag, { spec }] of flags)
    if (spec.default === null && spec.type !== 'boolean') options[`no-${flag}`] = { type: 'boolean' }
  const { values, positionals } = readArgs(args, {
    ...options,
    'database-url': { type: 'string' },
    help: { type: 'boolean', short: 'h' },
    json: { type: 'boolean' },
  })
  const subject = subjectOf(positionals, verb)
  const typed = Object.entries(values).flatMap(([flag, value]): [string, unknown][] => {
    const known = flags.get(flag)
    if (known === undefined) return []
    if (value === false && known.spec.type !== 'boolean') return [[known.name, null]]
    const number = known.spec.type === 'integer' || known.spec.type === 'number'
    if (number && (String(value).trim() === '' || !Number.isFinite(Number(value))))
      throw new UsageError(`--${flag} is "${value}"; it must be a number`)
    return [[known.name, number ? Number(value) : value]]
  })
  const url = values['database-url'] ?? process.env.DATABASE_URL
  return {
    json: values.json === true,
    subject,
    values: Object.fromEntries(typed) as Parsed['values'],
    databaseUrl: typeof url === 'string' && url !== '' ? url : undefined,
  }
}

function refuseUnknown(args: readonly string[], known: readonly string[]): void {
  const end = args.indexOf('--')
  for (const arg of end < 0 ? args : args.slice(0, end)) {
    const flag = /^--(?:no-)?([^=]+)/.exec(arg)?.[1]
    if (flag === undefined || known.includes(flag)) continue
    throw new UsageError(`unknown option --${flag}${didYouMean(flag, known).replace('"', '"--')}`)
  }
}

/** The last one would win, without a word about the others. */
function refuseRepeated(given: readonly string[]): void {
  const plain = given.map((name) => name.replace(/^no-/, ''))
  const twice = plain.find((name, i) => plain.indexOf(name) !== i)
  if (twice !== undefined) throw new UsageError(`--${twice} is given twice; give it once`)
}

function subjectOf(positionals: readonly string[], { name, takes }: Verb): string {
  const extra = positionals[takes === undefined ? 0 : 1]
  if (extra !== undefined) throw new UsageError(`"${extra}" is one argument too many; options begin with --`)
  const [subject = ''] = positionals
  if (takes !== undefined && subject === '')
    throw new UsageError(`${name} takes one ${takes}: outledger ${name} ${takes}`)
  return subject
}

const typeOf = (type: string) => ({ type: type === 'boolean' ? ('boolean' as const) : ('string' as const) })

function readArgs(args: readonly string[], options: Record<string, { type: 'string' | 'boolean'; short?: string }>) {
  try {
    const parsed = parseArgs({
      args: negativesJoined(args),
      options,
      allowPositionals: true,
      allowNegative: true,
      strict: true,
      tokens: true,
    })
    refuseRepeated(parsed.tokens.flatMap((token) => (token.kind === 'option' ? [token.name] : [])))
    return parsed
  } catch (error) {
    if (error instanceof UsageError) throw error
    // What is known and yet refused is the negation of what cannot be absent.
    const negated = /^Unknown option '--no-([a-z-]+)'/.exec((error as Error).message)?.[1]
    if (negated !== undefined) throw new UsageError(`--no-${negated} means nothing: there is always a ${negated}`)
    throw new UsageError((error as Error).message.split(/\.\s/)[0] ?? 'wrong usage')
  }
}

/** `--lease-ms -5` is a number out of range, and shall be called that. */
function negativesJoined(args: readonly string[]): string[] {
  const all: string[] = []
  for (const arg of args) {
    const last = all.at(-1)
    if (last !== undefined && /^--[^=]+$/.test(last) && /^-\d/.test(arg)) all.splice(-1, 1, `${last}=${arg}`)
    else all.push(arg)
  }
  return all
}

/** The database to work on. */
export function databaseUrl({ databaseUrl: url }: Parsed): string {
  if (url === undefined) throw new UsageError('no database: set DATABASE_URL or pass --database-url postgres://…')
  const problem = databaseUrlProblem(url)
  if (problem !== null) throw new UsageError(`the database URL ${problem}`)
  return url
}

/**
 * A message that names options as the code does, with the flags of the command line instead. Plain words such as `url`
 * are names only at the start, after "option" or before a number; what is quoted is a value and stays.
 */
export function withFlags(message: string, table: OptionTable): string {
  const names = Object.keys(table)
  if (names.length === 0) return message
  const [camel, any] = [names.filter((name) => /[A-Z]/.test(name)), names].map((some) => some.join('|') || '(?!)')
  const pattern = new RegExp(`"[^"]*"|(?:\\boption |^)(${any})\\b|\\b(${any})\\b(?= \\d)|\\b(${camel})\\b`, 'g')
  return message.replace(pattern, (all, ...found: (string | undefined)[]) => {
    const name = found.slice(0, 3).find((one) => one !== undefined)
    return name === undefined ? all : `--${flagOf(name)}`
  })
}

// From argv to the options of one verb: the flags come from the option tables, so they stand nowhere twice.
import { parseArgs } from 'node:util'
import { didYouMean } from '../core/option.ts'
import type { OptionTable } from '../options.ts'

/** The command line itself is wrong. */
export class UsageError extends Error {}

const flagOf = (name: string): string => name.replace(/[A-Z]/g, (c) => `-${c.toLowerCase()}`)

export interface Parsed {
  readonly help: boolean
  readonly json: boolean
  readonly positionals: string[]
  /** Values under their option names, of the table's types. */
  readonly values: Record<string, string | number | boolean>
}

/** Every verb knows --help, --json and --database-url; besides options it takes at most so many `names`. */
export function parse(args: string[], table: OptionTable, { names = 0 } = {}): Parsed {
  const flags = new Map(Object.entries(table).map(([name, spec]) => [flagOf(name), { name, spec }]))
  for (const arg of args) {
    const flag = /^--(?:no-)?([^=]+)/.exec(arg)?.[1]
    if (flag === undefined || flags.has(flag) || COMMON.includes(flag)) continue
    throw new UsageError(
      `unknown option --${flag}${didYouMean(flag, [...flags.keys(), ...COMMON]).replace('"', '"--')}`,
    )
  }
  const options = Object.fromEntries([...flags].map(([flag, { spec }]) => [flag, typeOf(spec.type)] as const))
  const { values, positionals } = readArgs(args, {
    ...options,
    'database-url': { type: 'string' },
    help: { type: 'boolean', short: 'h' },
    json: { type: 'boolean' },
  })
  if (positionals.length > names)
    throw new UsageError(`"${positionals[names]}" is one argument too many; options begin with --`)
  const typed = Object.entries(values).flatMap(([flag, value]) => {
    const known = flags.get(flag)
    if (known === undefined) return []
    const number = known.spec.type === 'integer' || known.spec.type === 'number'
    if (number && (String(value).trim() === '' || !Number.isFinite(Number(value))))
      throw new UsageError(`--${flag} is "${value}"; it must be a number`)
    return [[known.name, number ? Number(value) : value]]
  })
  return {
    help: values.help === true,
    json: values.json === true,
    positionals,
    values: withUrl(Object.fromEntries(typed), values),
  }
}

const COMMON = ['help', 'json', 'database-url']

const typeOf = (type: string) => ({ type: type === 'boolean' ? ('boolean' as const) : ('string' as const) })

function readArgs(args: string[], options: Record<string, { type: 'string' | 'boolean'; short?: string }>) {
  try {
    return parseArgs({
      args: negativesJoined(args),
      options,
      allowPositionals: true,
      allowNegative: true,
      strict: true,
    })
  } catch (error) {
    throw new UsageError((error as Error).message.split(/\.\s/)[0] ?? 'wrong usage')
  }
}

/** `--lease-ms -5` is a number out of range, and shall be called that. */
function negativesJoined(args: string[]): string[] {
  const all: string[] = []
  for (const arg of args) {
    const last = all.at(-1)
    if (last !== undefined && /^--[^=]+$/.test(last) && /^-\d/.test(arg)) all.splice(-1, 1, `${last}=${arg}`)
    else all.push(arg)
  }
  return all
}

function withUrl(typed: Parsed['values'], values: Record<string, unknown>): Parsed['values'] {
  const url = values['database-url'] ?? process.env.DATABASE_URL
  return typeof url === 'string' && url !== '' ? { ...typed, databaseUrl: url } : typed
}

/** The database to work on. */
export function databaseUrl({ values }: Parsed): string {
  const url = values.databaseUrl
  if (typeof url !== 'string') throw new UsageError('no database: set DATABASE_URL or pass --database-url postgres://…')
  if (!/^postgres(ql)?:\/\//.test(url) || !URL.canParse(url))
    throw new UsageError('the database URL must look like postgres://user@host:5432/name')
  return url
}

/** The options of a table as help lines. */
export function helpOf(title: string, table: OptionTable): string {
  const lines = Object.entries(table).map(([name, { type, default: value, doc }]) => {
    const flag = type === 'boolean' ? `--${flagOf(name)}` : `--${flagOf(name)} ${type === 'string' ? 'TEXT' : 'N'}`
    return `  ${flag.padEnd(28)} ${doc}${value === undefined || value === null ? '' : ` (default ${value})`}`
  })
  return [title, '', ...lines].join('\n')
}

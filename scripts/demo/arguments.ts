// argv → what the demo shall do, or one line that says what is wrong with it.
import { parseArgs } from 'node:util'
import { didYouMean, type OptionSpec, optionProblem } from '../../src/core/option.ts'

export interface DemoOptions {
  readonly help: boolean
  readonly keep: boolean
  readonly json: boolean
  readonly keyCheck: boolean
  readonly transactions: number
  /** A server to use instead of an embedded one. */
  readonly server: string | null
}

/** The command line or DATABASE_URL is wrong. */
export class UsageError extends Error {}

const SWITCHES = ['help', 'keep', 'json', 'without-key-check']

/** One begins every 10 ms: more than these would not end within 30 s. */
const TRANSACTIONS = {
  type: 'integer',
  default: 600,
  min: 50,
  max: 1_000,
  doc: 'Business transactions to run',
} as const

export const HELP = `npm start -- [options]: business transactions become signed webhooks while processes are killed

  --keep                 leave the database up and print its URL
  --json                 print nothing but the summary, as one line of JSON
  --transactions N       business transactions to run, a tenth of them rolled back (default 600)
  --without-key-check    unplug the receiver's key check: repetitions take effect, and the exit code is 1
  --help                 this text

DATABASE_URL names a server to use instead of an embedded one. The demo makes two databases of its own
there, drops them at the end and touches nothing else; the role needs CREATEDB.
Exit codes: 0 if effects = committed, lost = 0 and phantoms = 0; 1 if not, or on trouble; 2 wrong usage;
130 interrupted.`

/** @throws UsageError */
export function readArguments(args: string[], env: NodeJS.ProcessEnv): DemoOptions {
  const known = [...SWITCHES, 'transactions']
  const names = args.map((arg) => /^--([^=]+)/.exec(arg)?.[1])
  const unknown = names.find((name) => name !== undefined && !known.includes(name))
  if (unknown !== undefined)
    throw new UsageError(`unknown option --${unknown}${didYouMean(unknown, known).replace('"', '"--')}`)
  const { help, json, keep, transactions, 'without-key-check': unplugged } = valuesOf(args)
  const server = env.DATABASE_URL || null
  if (server !== null && !(/^postgres(ql)?:\/\//.test(server) && URL.canParse(server)))
    throw new UsageError('DATABASE_URL must look like postgres://user@host:5432/name; unset it for an embedded server')
  const count = transactions === undefined ? TRANSACTIONS.default : Number(transactions || Number.NaN)
  const problem = optionProblem(count, TRANSACTIONS as OptionSpec)
  if (problem !== null) throw new UsageError(`--transactions ${problem.replace(/^is null/, `is "${transactions}"`)}`)
  return { help, keep, json, keyCheck: !unplugged, transactions: count, server }
}

function valuesOf(args: string[]) {
  const flag = { type: 'boolean', default: false } as const
  const options = { help: { ...flag, short: 'h' }, json: flag, keep: flag, 'without-key-check': flag } as const
  try {
    return parseArgs({ args, options: { ...options, transactions: { type: 'string' } } }).values
  } catch (error) {
    throw new UsageError((error as Error).message.split('. ')[0])
  }
}

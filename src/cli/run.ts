// argv → verb → exit code, with one line for every error.
import { didYouMean } from '../core/option.ts'
import { databaseTrouble } from '../database-trouble.ts'
import { OutledgerError } from '../errors.ts'
import { codeOf } from '../events.ts'
import { isPassing } from '../loop.ts'
import type { OptionTable } from '../options.ts'
import { VERSION } from '../version.ts'
import { helpOf, helpOfAll } from './help.ts'
import { harmless, type Screen } from './print.ts'
import { type Parsed, parse, UsageError, withFlags } from './usage.ts'
import { EXITS, VERBS, type Verb, type VerbName } from './verbs.ts'

/** What a verb does with its parsed arguments; it prints its answer and returns the exit code. */
type Run = (parsed: Parsed, screen: Screen) => Promise<number>

// Loaded when called for: help and wrong usage need neither driver nor HTTP client.
const RUNS: Readonly<Record<VerbName, () => Promise<Run>>> = {
  migrate: async () => (await import('./migrate.ts')).migrate,
  'endpoint put': async () => (await import('./endpoint.ts')).put,
  'endpoint list': async () => (await import('./endpoint.ts')).list,
  'endpoint show': async () => (await import('./endpoint-show.ts')).show,
  'endpoint test': async () => (await import('./endpoint-verbs.ts')).test,
  'endpoint pause': async () => (await import('./endpoint-verbs.ts')).pause,
  'endpoint resume': async () => (await import('./endpoint-verbs.ts')).resume,
  'endpoint review': async () => (await import('./endpoint-verbs.ts')).review,
  'endpoint rotate-secret': async () => (await import('./endpoint-verbs.ts')).rotate,
  'endpoint remove': async () => (await import('./endpoint-verbs.ts')).remove,
  status: async () => (await import('./status.ts')).status,
  show: async () => (await import('./show.ts')).show,
  list: async () => (await import('./list.ts')).list,
  work: async () => (await import('./work.ts')).work,
  sweep: async () => (await import('./sweep.ts')).sweep,
  purge: async () => (await import('./purge.ts')).purge,
}

/** Errors that a person's input causes; everything else is trouble. */
const USAGE_CODES = new Set(['invalid_option', 'invalid_endpoint', 'secret_unresolvable'])

/** Run one command line. Answers go to `out`, errors to `err`; returns the exit code. */
export async function run(argv: readonly string[], out: Screen, err: Screen): Promise<number> {
  const verb = verbOf(argv)
  try {
    const args = argv.slice(verb?.name.split(' ').length ?? 0)
    if (verb === undefined) return general(argv, out)
    if (asksHelp(args)) {
      out.print(helpOf(out, verb))
      return EXITS.done[0]
    }
    const parsed = parse(args, verb)
    const go = await RUNS[verb.name as VerbName]()
    return await go(parsed, out)
  } catch (error) {
    const { code, message, usage } = told(error, verb?.options ?? {})
    err.print(
      argv.includes('--json') ? JSON.stringify({ error: { code, message } }) : `outledger: ${harmless(message)}`,
    )
    return usage ? EXITS.usage[0] : EXITS.trouble[0]
  }
}

function verbOf([first, second]: readonly string[]): Verb | undefined {
  const verbs: readonly Verb[] = VERBS
  return verbs.find(({ name }) => name === `${first} ${second}`) ?? verbs.find(({ name }) => name === first)
}

const asksHelp = (args: readonly string[]): boolean => {
  const end = args.indexOf('--')
  return (end < 0 ? args : args.slice(0, end)).some((arg) => arg === '--help' || arg === '-h')
}

/** What is no verb: help, the version, half a verb or nothing that is known. */
function general([first, ...rest]: readonly string[], out: Screen): number {
  if (first === '--version' || first === '-v') {
    out.print(VERSION)
    return EXITS.done[0]
  }
  if (first === 'help' && rest.length > 0) return helpFor(rest, out)
  if (first === undefined || first === 'help' || first === '--help' || first === '-h') {
    out.print(helpOfAll(out))
    return first === undefined ? EXITS.usage[0] : EXITS.done[0]
  }
  if (first.startsWith('-')) throw new UsageError('options come after the verb, as in outledger status --json')
  const group = VERBS.filter(({ name }) => name.startsWith(`${first} `))
  const words = group.length > 0 ? group : VERBS
  if (group.length > 0 && asksHelp(rest)) {
    out.print(helpOfAll(out, first))
    return EXITS.done[0]
  }
  if (group.length > 0 && rest[0] === undefined)
    throw new UsageError(`half a verb; it goes on: ${group.map(({ name }) => name).join(', ')}`)
  const given = group.length > 0 ? `${first} ${rest[0]}` : first
  const known = words.map(({ name }) => (group.length > 0 ? name : (name.split(' ')[0] as string)))
  throw new UsageError(`unknown verb "${given}"${didYouMean(given, known)}; see "outledger --help"`)
}

function helpFor(words: readonly string[], out: Screen): number {
  const verb = verbOf(words)
  if (verb === undefined) return general([...words, '--help'], out)
  out.print(helpOf(out, verb))
  return EXITS.done[0]
}

function told(error: unknown, options: OptionTable): { code: string; message: string; usage: boolean } {
  if (error instanceof UsageError) return { code: 'usage', message: error.message, usage: true }
  if (!(error instanceof OutledgerError)) {
    if (isPassing(error)) return told(databaseTrouble(error), options)
    // A driver's message may carry parameters: only its code is shown.
    return { code: 'failed', message: `failed with ${codeOf(error)}`, usage: false }
  }
  const { code, message } = error
  const usage = USAGE_CODES.has(code)
  return { code, message: usage ? withFlags(message, options) : message, usage }
}

// The command line as tables: verbs, the flags that only verbs have, examples.
import { usageOf } from '../../src/cli/help.ts'
import { flagOf, withFlags } from '../../src/cli/usage.ts'
import { VERBS, type Verb } from '../../src/cli/verbs.ts'
import type { OptionSpec } from '../../src/core/option.ts'
import { ENDPOINT_OPTIONS } from '../../src/endpoint-options.ts'
import { POLLER_OPTIONS } from '../../src/options.ts'
import { code } from './table.ts'

const verbs: readonly Verb[] = VERBS

const sentence = (text: string): string => `${text[0]?.toUpperCase()}${text.slice(1)}.`

export const verbRows = (): string[][] =>
  verbs.map((verb) => [
    code(usageOf(verb).replace(/ \[options\]$/, '')),
    `${sentence(verb.summary)} ${withFlags(verb.more ?? '', verb.options)}`.trim(),
  ])

/** Flags that stand in the tables of the poller's or the endpoint's options are not repeated: the very same row. */
const elsewhere = (spec: OptionSpec): boolean =>
  [POLLER_OPTIONS, ENDPOINT_OPTIONS].some((options) => Object.values<OptionSpec>(options).includes(spec))

export function flagRows(): string[][] {
  const rows = new Map<string, { flag: string; of: string[]; meaning: string }>()
  for (const { name, options } of verbs)
    for (const [option, spec] of Object.entries<OptionSpec>(options)) {
      if (elsewhere(spec)) continue
      const { doc, oneOf, default: value } = spec
      const words = oneOf === undefined ? '' : `: ${oneOf.map(code).join(', ')}`
      const given =
        value === undefined
          ? ' (required)'
          : value === null || value === false
            ? ''
            : ` (default ${code(String(value))})`
      const meaning = `${withFlags(doc, options)}${words}${given}`
      const row = rows.get(`${option} ${meaning}`) ?? { flag: code(`--${flagOf(option)}`), of: [], meaning }
      row.of.push(code(name))
      rows.set(`${option} ${meaning}`, row)
    }
  return [...rows.values()].map(({ flag, of, meaning }) => [flag, of.join(', '), meaning])
}

export const exampleLines = (): string[] => verbs.flatMap(({ examples }) => examples)

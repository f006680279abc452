// The parts of the manual that are made from the source, each between `<!-- NAME:begin -->` and `<!-- NAME:end -->`.
import { COMMON, EXITS } from '../../src/cli/verbs.ts'
import { MOVES } from '../../src/core/state.ts'
import { ENDPOINT_OPTIONS } from '../../src/endpoint-options.ts'
import { ERRORS } from '../../src/errors.ts'
import { POLLER_OPTIONS } from '../../src/options.ts'
import type { View } from './catalog.ts'
import { pollerEvents } from './events.ts'
import { code, flag, folded, OPTION_TITLES, optionRows, table } from './table.ts'
import { exampleLines, flagRows, verbRows } from './verbs.ts'

export const SECTIONS: Readonly<Record<string, (views: readonly View[]) => string>> = {
  'poller-options': () => table(OPTION_TITLES, optionRows(POLLER_OPTIONS)),
  'endpoint-options': () =>
    table(
      OPTION_TITLES,
      optionRows(ENDPOINT_OPTIONS, (name) => (name === 'name' ? code('NAME') : flag(name))),
    ),
  errors: () =>
    table(
      ['code', 'meaning', 'remedy'],
      Object.entries(ERRORS).map(([name, [meaning, remedy]]) => [code(name), meaning, remedy]),
    ),
  moves: () =>
    table(
      ['verb', 'from → to'],
      Object.entries(MOVES).map(([verb, moves]) => [code(verb), moves]),
    ),
  events: () => table(['event', 'when', 'with'], pollerEvents()),
  views: (views) =>
    views
      .map((view) => folded(`<code>outbox.${view.name}</code>: ${view.comment}`, columnsOf(view, views)))
      .join('\n\n'),
  verbs: () => table(['verb', 'does'], verbRows()),
  flags: () => table(['flag', 'of', 'meaning'], flagRows()),
  common: () =>
    table(
      ['flag', 'meaning'],
      Object.entries(COMMON).map(([name, meaning]) => [code(`--${name}`), meaning]),
    ),
  examples: () => `\`\`\`sh\n${exampleLines().join('\n')}\n\`\`\``,
  exits: () =>
    table(
      ['exit code', 'meaning'],
      Object.values(EXITS).map(([exit, meaning]) => [code(String(exit)), meaning]),
    ),
}

/** A view that repeats the columns of an earlier one says so. */
function columnsOf(view: View, views: readonly View[]): string {
  const same = ({ columns }: View) => JSON.stringify(columns) === JSON.stringify(view.columns)
  const first = views.find(same)
  if (first !== undefined && first !== view) return `The columns of ${code(`outbox.${first.name}`)}.`
  return table(
    ['column', 'meaning'],
    view.columns.map(({ name, comment }) => [code(name), comment]),
  )
}

/** The manual with every section written anew. @throws when a section has no place in it, or a place no section */
export function manual(text: string, views: readonly View[]): string {
  const places = [...text.matchAll(/<!-- ([\w-]+):begin -->/g)].map(([, name]) => name as string)
  const wanted = Object.keys(SECTIONS)
  if (places.toSorted().join() !== wanted.toSorted().join())
    throw new Error(`README.md has places for ${places.join(', ')}; the sections are ${wanted.join(', ')}`)
  return text.replace(/(<!-- ([\w-]+):begin -->\n)[\s\S]*?(<!-- \2:end -->)/g, (_all, begin, name, end) => {
    const made = SECTIONS[name]?.(views)
    return `${begin}\n${made}\n\n${end}`
  })
}

// README.md as its tests read it: blocks of code, tables, spans of code in the prose.
import { textOf } from './source.ts'

export const README = textOf('README.md')

export interface Block {
  readonly language: string
  readonly text: string
  /** Of its first line in README.md. */
  readonly line: number
  /** `receiver.mjs`, where the first line of the block says so. */
  readonly file: string | null
}

const lineAt = (index: number): number => README.slice(0, index).split('\n').length

/** All blocks, in their order. */
export const BLOCKS: readonly Block[] = [...README.matchAll(/^```(\w*)\n([\s\S]+?)^```$/gm)].map(
  ({ 1: language = '', 2: text = '', index }) => ({
    language,
    text,
    line: lineAt(index) + 1,
    file: /^\/\/ ([\w-]+\.m?[jt]s)\n/.exec(text)?.[1] ?? null,
  }),
)

export const blocksOf = (language: string): Block[] => BLOCKS.filter((block) => block.language === language)

/** What stands outside of blocks. */
export const PROSE = README.replace(/^```\w*\n[\s\S]+?^```$/gm, '')

const cellsOf = (line: string): string[] =>
  line
    .slice(1, -1)
    .split(/(?<!\\)\|/)
    .map((cell) => cell.trim().replaceAll('\\|', '|'))

/** Cells of the only table with these titles. */
export function tableOf(...titles: readonly string[]): string[][] {
  const head = `| ${titles.join(' | ')} |\n`
  const places = PROSE.split(head)
  if (places.length !== 2)
    throw new Error(`README.md has ${places.length - 1} tables with the titles ${titles.join(', ')}`)
  const [, ...lines] = (places[1] as string).split('\n')
  return lines
    .slice(
      0,
      lines.findIndex((line) => !line.startsWith('|')),
    )
    .map(cellsOf)
}

/** Texts in backticks: of a cell, or of everything outside of blocks. */
export const spansOf = (text: string): string[] => [...text.matchAll(/`([^`\n]+)`/g)].map(([, span]) => span as string)

/** What stands under this heading, up to the next one of its level or above. */
export function sectionOf(heading: string): string {
  const from = README.indexOf(`\n${heading}\n`)
  if (from < 0) throw new Error(`README.md has no heading ${heading}`)
  const level = heading.split(' ')[0]?.length ?? 0
  const rest = README.slice(from + heading.length + 2)
  const end = rest.search(new RegExp(`^#{1,${level}} `, 'm'))
  return end < 0 ? rest : rest.slice(0, end)
}

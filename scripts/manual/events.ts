// The events of a poller, read from their declaration: a type has nothing at run time to ask.
import { readFileSync } from 'node:fs'
import { code } from './table.ts'

const DECLARATION = /export interface PollerEvents \{\n([\s\S]+?)\n\}/
const EVENT = / {2}\/\*\* (.+) \*\/\n {2}(?:'([\w.]+)'|(\w+)): \[(.+)\]/g

/** Name, when, and what comes with it. @throws when an event has no comment, and would be missing */
export function pollerEvents(): string[][] {
  const text = readFileSync('src/events.ts', 'utf8')
  const body = DECLARATION.exec(text)?.[1] ?? ''
  const events = [...body.matchAll(EVENT)].map(([, when = '', quoted, plain, given = '']) => [
    code(quoted ?? plain ?? ''),
    when,
    given.startsWith('{') ? fieldsOf(given) : code(given),
  ])
  const declared = body.split('\n').filter((line) => /^ {2}['\w.]+: \[/.test(line)).length
  if (events.length !== declared) throw new Error(`${declared - events.length} of PollerEvents have no comment`)
  return events
}

const fieldsOf = (type: string): string =>
  [...type.matchAll(/(\w+): /g)].map(([, name]) => code(name as string)).join(', ')

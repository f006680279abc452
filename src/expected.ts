// What must exist, as the app defines it: a query over its own tables, or rows from anywhere, in pages.
import { didYouMean } from './core/option.ts'
import { OutledgerError } from './errors.ts'
import type { Message } from './message.ts'
import type { Executor, Row } from './sql/executor.ts'
import { inspectExpected, readExpected } from './sql/reconcile.ts'
import type { Handle } from './transaction.ts'

/** Rows that are in memory at once. */
const PAGE = 1_000

type Rows<R> = Iterable<R> | AsyncIterable<R>

export interface Reconciliation<R = Row> {
  /** Stands in `discovered_by` of what it finds: 1 to 200 of `A-Z a-z 0-9 . _ : -`, and not `app`. */
  readonly name: string
  /** A query over the app's own tables, or a function that gives rows from anywhere: one row for each event that must exist. */
  readonly expected: string | ((db: Handle) => Rows<R> | Promise<Rows<R>>)
  /** Of a query: the column of its rows, unique and best indexed, in whose order they are read, a thousand at a time. */
  readonly pageBy?: string | undefined
  /** The event as the app would have enqueued it, with the very same key and payload. Rows are as the client gives them. */
  readonly toMessage: (row: R) => Message
}

const FIELDS = ['name', 'expected', 'pageBy', 'toMessage']
/** By name; what type of rows each has, its definition knows. */
const defined = new Map<string, unknown>()

/** Define a reconciliation, once in a process. @throws OutledgerError `invalid_reconciliation` */
export function defineReconciliation<R = Row>(definition: Reconciliation<R>): Reconciliation<R> {
  const { name, expected, pageBy, toMessage } = definition
  if (typeof name !== 'string' || !/^[A-Za-z0-9._:-]{1,200}$/.test(name) || name === 'app')
    throw new OutledgerError(
      'invalid_reconciliation',
      `name ${JSON.stringify(String(name).slice(0, 100))} must be 1 to 200 of A-Z a-z 0-9 . _ : - and not "app"`,
    )
  const wrong = (what: string) => new OutledgerError('invalid_reconciliation', `reconciliation ${name}: ${what}`)
  for (const field of Object.keys(definition))
    if (!FIELDS.includes(field)) throw wrong(`unknown field "${field}"${didYouMean(field, FIELDS)}`)
  if (typeof toMessage !== 'function') throw wrong('toMessage must be a function from a row to a message')
  if (typeof expected !== 'string' && typeof expected !== 'function')
    throw wrong('expected must be the text of a query, or a function that gives rows')
  if (typeof expected === 'string' && (typeof pageBy !== 'string' || pageBy === ''))
    throw wrong('pageBy must name a column of the query that is unique, such as its primary key')
  if (typeof expected === 'string' && /\$\d/.test(expected)) throw wrong('the query takes no parameters, and names $n')
  if (defined.has(name)) throw wrong('is defined already; each needs a name of its own')
  defined.set(name, definition)
  return definition
}

/** Of a name, or of a definition itself. @throws OutledgerError `unknown_reconciliation` when it was never defined */
export function definitionOf<R>(which: string | Reconciliation<R>): Reconciliation<R> {
  const name = typeof which === 'string' ? which : String(which?.name)
  const definition = defined.get(name)
  if (definition === undefined || (typeof which !== 'string' && definition !== which))
    throw new OutledgerError(
      'unknown_reconciliation',
      `no reconciliation ${JSON.stringify(name)} is defined in this process${didYouMean(name, [...defined.keys()])}`,
    )
  return definition as Reconciliation<R>
}

/** What is expected, at most a thousand rows at a time; a failing query's error is the database's own. */
export async function* pagesOf<R>(
  db: Handle,
  executor: Executor,
  { name, expected, pageBy = '' }: Reconciliation<R>,
): AsyncGenerator<R[]> {
  if (typeof expected === 'function') {
    let page: R[] = []
    for await (const row of await expected(db)) {
      page.push(row)
      if (page.length < PAGE) continue
      yield page
      page = []
    }
    if (page.length > 0) yield page
    return
  }
  const wrong = (what: string) =>
    new OutledgerError('invalid_reconciliation', `reconciliation ${name}: pageBy ${pageBy} is ${what}`)
  // The error of a client may carry parameters, and where it does the database's own is inside.
  const app: Executor = {
    run: (text, values) =>
      executor.run<never>(text, values).catch((error) => {
        throw (error as { cause?: unknown }).cause ?? error
      }),
  }
  const { type, blank } = await inspectExpected(app, { query: expected, pageBy })
  if (blank) throw wrong('null in some rows, which no order would reach; name a column that never is')
  for (let after: string | null = null; ; ) {
    const found = await readExpected(app, { query: expected, pageBy }, { type, after, limit: PAGE + 1 })
    const page = found.slice(0, PAGE)
    const last = page.at(-1)
    if (last === undefined) return
    if (found[PAGE]?.position === last.position)
      throw wrong('the same in two rows, and a page would end between them; name a column that is unique')
    yield page.map(({ row }) => row as R)
    if (found.length <= PAGE) return
    after = last.position
  }
}

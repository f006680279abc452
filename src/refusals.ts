// What the database refuses, in our words; whatever the client has wrapped around it, no payload comes out.
import { OutledgerError } from './errors.ts'

/** What the SQL functions raise begins so; its first word is the field. */
const OURS = /outledger: (?:message (\d+): )?((\w+) [^\n]*)/

const MISSING = new Set(['42883', '3F000', '42P01'])

/** Rethrow what a call of outbox.enqueue or outbox.enqueue_many threw. */
export function refused(error: unknown): never {
  const cause = (error as { cause?: unknown }).cause ?? error
  const { code, message } = cause as { code?: string; message?: string }
  const [, number, what = '', field] = (code === '22023' && OURS.exec(message ?? '')) || []
  if (field !== undefined) {
    throw new OutledgerError(
      field === 'endpoint' ? 'unknown_endpoint' : 'invalid_message',
      number === undefined ? what : `messages[${Number(number) - 1}]: ${what}`,
    )
  }
  if (MISSING.has(code ?? ''))
    throw new OutledgerError('schema_missing', 'the outbox schema is missing here, or older; run "outledger migrate"')
  throw cause
}

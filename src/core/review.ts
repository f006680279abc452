// Who gets the data: a change of that waits for a second look, and is told as text that a later change can go on from.

/** Settings of an endpoint whose change waits for a review. */
export interface Recipient {
  readonly host: string
  readonly region: string | null
  readonly processor: string | null
}

const FIELDS = ['host', 'region', 'processor'] as const

const WORD = /^(?!none$)[\p{L}\p{N}._:[\]-]+$/u
const VALUE = String.raw`"(?:[^"\\]|\\.)*"|[^\s;"]+`
const ENTRY = new RegExp(`(${FIELDS.join('|')}) (${VALUE}) → (${VALUE})`, 'gu')

const shown = (value: string | null): string =>
  value === null ? 'none' : WORD.test(value) ? value : JSON.stringify(value)

/**
 * What waits for a review after this change, such as `host a.example → b.example; region eu → us`, or null.
 * `waiting` is what did so before: of a setting changed again it is the reviewed value that stays on the left.
 */
export function unreviewedAfter(waiting: string | null, before: Recipient, after: Recipient): string | null {
  const entries = new Map<string, readonly [from: string, to: string]>()
  for (const [, field = '', from = '', to = ''] of (waiting ?? '').matchAll(ENTRY)) entries.set(field, [from, to])
  for (const field of FIELDS) {
    if (before[field] === after[field]) continue
    entries.set(field, [entries.get(field)?.[0] ?? shown(before[field]), shown(after[field])])
  }
  const text = FIELDS.flatMap((field) => {
    const entry = entries.get(field)
    return entry === undefined ? [] : [`${field} ${entry[0]} → ${entry[1]}`]
  })
  return text.length === 0 ? null : text.join('; ')
}

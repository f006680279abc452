// What an option may be, and the nearest known name of an unknown one.

export interface OptionSpec {
  readonly type: 'integer' | 'number' | 'string' | 'boolean'
  /** Undefined: must be given. Null: may be absent. */
  readonly default?: number | string | boolean | null
  readonly min?: number
  readonly max?: number
  readonly oneOf?: readonly string[]
  readonly doc: string
}

/** What is wrong with a value, as the second half of a sentence, or null. */
export function optionProblem(value: unknown, { type, min, max, oneOf }: OptionSpec): string | null {
  const shown = shownAs(value).slice(0, 100)
  const range = min === undefined ? '' : ` from ${min} to ${max}`
  if (
    type === 'integer'
      ? !Number.isSafeInteger(value)
      : type === 'number'
        ? !Number.isFinite(value)
        : typeof value !== type
  ) {
    return `is ${shown}; it must be ${type === 'integer' ? 'a whole number' : `a ${type}`}${range}`
  }
  if (typeof value === 'number' && (value < (min ?? value) || value > (max ?? value)))
    return `is ${shown}; it must be${range}`
  if (value === '') return 'is empty'
  if (oneOf !== undefined && !oneOf.includes(value as string))
    return `is ${shown}; it must be one of ${oneOf.join(', ')}`
  return null
}

// Not JSON.stringify of anything: it throws for a BigInt or a cycle, and calls NaN null.
const shownAs = (value: unknown): string =>
  typeof value === 'string'
    ? JSON.stringify(value)
    : typeof value === 'object' && value !== null
      ? 'an object'
      : String(value)

/** `; did you mean "x"?` for the nearest of the known names, or nothing when none is near. */
export function didYouMean(name: string, known: readonly string[]): string {
  const near = known
    .map((candidate) => ({ candidate, distance: distance(name.toLowerCase(), candidate.toLowerCase()) }))
    .sort((a, b) => a.distance - b.distance)[0]
  return near !== undefined && near.distance <= Math.max(2, name.length / 3)
    ? `; did you mean "${near.candidate}"?`
    : ''
}

/** Levenshtein distance. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const swap = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min((row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, swap))
    }
    row = next
  }
  return row[b.length] ?? 0
}

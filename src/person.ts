// Who does something and why, for the record.
import { userInfo } from 'node:os'
import type { OptionSpec } from './core/option.ts'
import { OutledgerError } from './errors.ts'
import { completeOptions } from './options.ts'
import type { Person } from './sql/endpoint-change.ts'

/** Who does it (default: the current user), and why. */
export interface By {
  readonly by?: string | undefined
  readonly why?: string | undefined
}

/** The same where the record must say why. */
export interface ByWhy extends By {
  readonly why: string
}

const WHY = { type: 'string', default: null, doc: 'Why, for the record' } as const satisfies OptionSpec

/** For the option tables of verbs: who, and why. */
export const PERSON_OPTIONS = {
  by: { type: 'string', default: null, doc: 'Who does it, for the record; default the current user' },
  why: WHY,
} as const

const LIMIT = 2_000

/** Defaults filled in. @throws OutledgerError `invalid_option` for what cannot stand in the record, or a missing why */
export function byline(given: By, { needsWhy = false } = {}): Person {
  const { default: _, ...required } = WHY
  const { by, why } = completeOptions({ ...PERSON_OPTIONS, why: needsWhy ? required : WHY }, given)
  for (const [name, value] of Object.entries({ by, why }))
    if (value !== null && (value.length > LIMIT || value.includes('\0') || !value.isWellFormed()))
      throw new OutledgerError(
        'invalid_option',
        `option ${name} has ${value.length} characters; it must be up to ${LIMIT} of text`,
      )
  return { by: by ?? currentUser(), why }
}

/** A container may run under a number that no user has. */
function currentUser(): string {
  try {
    return userInfo().username
  } catch {
    return process.env.USER || `uid ${process.getuid?.() ?? 'unknown'}`
  }
}

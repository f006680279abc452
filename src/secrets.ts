// Secrets are never in the database, only references to them: env:NAME, file:/path, or what the caller's resolver understands.
import { readFile } from 'node:fs/promises'
import { isAbsolute } from 'node:path'
import { shownReference } from './core/reference.ts'
import { SECRET_FORM, secretBytes } from './core/signature.ts'
import { OutledgerError } from './errors.ts'
import { codeOf } from './events.ts'

/** Turn a reference into its value. Throw when the store is down; the delivery is then given back, not charged. */
export type ResolveSecret = (reference: string) => Promise<string> | string

/** Understands `env:NAME` and `file:/path`. @throws OutledgerError `secret_unresolvable` */
export async function resolveSecret(reference: string): Promise<string> {
  const [, scheme, rest] = /^(env|file):(.+)$/s.exec(reference) ?? []
  if (scheme === 'env') {
    const value = process.env[rest as string]?.trim()
    if (value === undefined || value === '')
      throw unresolvable(reference, `the variable is not set; set ${rest} here and for every poller`)
    return value
  }
  if (scheme === 'file') {
    if (!isAbsolute(rest as string))
      throw unresolvable(
        reference,
        'its path is relative, and means another file to every poller; give the absolute path',
      )
    const value = await readFile(rest as string, 'utf8').catch((error: NodeJS.ErrnoException) => {
      throw unresolvable(reference, `reading it failed with ${error.code}; make it readable here and for every poller`)
    })
    // An empty one is about to be written again: no reason yet to give up on what waits for it.
    if (value.trim() === '') throw unresolvable(reference, 'the file is empty; write the secret into it')
    return value.trim()
  }
  // Not repeated: it may be the secret itself, pasted where its reference belongs.
  throw new OutledgerError(
    'secret_unresolvable',
    `what was given (${reference.length} characters) is no secret reference; a reference is env:NAME or file:/path`,
  )
}

/**
 * What the reference names, never empty. A store that answers nothing has nothing yet, and is not believed.
 *
 * @throws OutledgerError `secret_unresolvable`, whatever went wrong: its message holds nothing of what a store has said
 */
export async function secretValue(reference: string, resolve: ResolveSecret): Promise<string> {
  let value: unknown
  try {
    value = await resolve(reference)
  } catch (error) {
    if (error instanceof OutledgerError && error.code === 'secret_unresolvable') throw error
    throw unresolvable(reference, `the secret store failed with ${codeOf(error)}`)
  }
  if (typeof value !== 'string') throw unresolvable(reference, 'the secret store returned no text')
  // Stores that keep files answer with their last line break: no part of a secret, and no header may hold it.
  const trimmed = value.trim()
  if (trimmed === '') throw unresolvable(reference, 'its value is empty')
  return trimmed
}

/** The bytes of a signing secret. @throws OutledgerError when the reference resolves to something that is no secret */
export async function signingSecret(reference: string, resolve: ResolveSecret): Promise<Buffer> {
  const bytes = secretBytes(await secretValue(reference, resolve))
  if (bytes === null)
    throw new OutledgerError(
      'invalid_endpoint',
      `what secret reference ${JSON.stringify(shownReference(reference))} names is no secret: it must be ${SECRET_FORM}`,
    )
  return bytes
}

export const unresolvable = (reference: string, why: string) =>
  new OutledgerError(
    'secret_unresolvable',
    `secret reference ${JSON.stringify(shownReference(reference))} cannot be resolved: ${why}`,
  )

// What may be sent as the body of a delivery by reference: the text of a JSON object or array, in UTF-8.

/** Longest body that is loaded: it is in memory as a whole, like every other that is under way. */
export const LOADED_LIMIT_BYTES = 16 * 1024 * 1024

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** The bytes that were loaded, a copy that nobody else can change; or what is wrong with them, in words that hold none of them. */
export function bytesOf(loaded: unknown): { readonly body: Buffer } | { readonly problem: string } {
  if (loaded === undefined || loaded === null || loaded === '') return { problem: 'returned nothing' }
  const isText = typeof loaded === 'string'
  if (!isText && !(loaded instanceof Uint8Array))
    return { problem: `returned ${typeof loaded === 'object' ? 'an' : 'a'} ${typeof loaded}, not text or bytes` }
  const length = isText ? Buffer.byteLength(loaded) : loaded.byteLength
  if (length > LOADED_LIMIT_BYTES) return { problem: `returned ${length} bytes; the limit is ${LOADED_LIMIT_BYTES}` }
  // Half a surrogate pair has no bytes, and would be sent as another character.
  if (isText && !loaded.isWellFormed()) return { problem: 'returned text with a lone surrogate' }
  return { body: Buffer.from(loaded as string) }
}

/** What is wrong with these bytes as a body; null: nothing. Large ones take long. */
export function bodyProblem(body: Buffer): string | null {
  try {
    const value: unknown = JSON.parse(utf8.decode(body))
    if (typeof value === 'object' && value !== null) return null
  } catch {
    // Said below.
  }
  return 'returned what is no JSON object or array in UTF-8'
}

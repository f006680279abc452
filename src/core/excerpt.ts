// The beginning of a response body as text that every database, log and terminal can take.

/** Kept of a response body, as bytes of UTF-8. */
const LIMIT_BYTES = 2_048

/** What is kept of a body once another chunk of it has come. */
export const beginning = (kept: Buffer | null, chunk: Buffer, limit = LIMIT_BYTES): Buffer =>
  kept === null
    ? Buffer.from(chunk.subarray(0, limit))
    : kept.length < limit
      ? Buffer.concat([kept, chunk.subarray(0, limit - kept.length)])
      : kept

/** Whatever is no text for the eye; line breaks and tabs are. */
const CONTROL = /(?![\t\n\r])\p{Cc}/gu

/** At most 2 KiB; U+0000 and other control characters, lone surrogates and what is no UTF-8 become U+FFFD. Null when empty. */
export function excerptOf(body: Uint8Array): string | null {
  // As a stream, so that a character that the cut went through is left out and not replaced.
  const decoded = new TextDecoder().decode(body.subarray(0, LIMIT_BYTES), {
    stream: body.length >= LIMIT_BYTES,
  })
  const text = decoded.replace(CONTROL, '\ufffd')
  // A replacement is longer than the byte it stands for; encodeInto stops before the character that does not fit.
  const { read } = new TextEncoder().encodeInto(text, new Uint8Array(LIMIT_BYTES))
  return read === 0 ? null : text.slice(0, read)
}

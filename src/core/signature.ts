// Standard Webhooks 1.0.0: HMAC-SHA256 over `id.timestamp.body`, base64, one `v1,` entry per valid secret.
import { createHmac, timingSafeEqual } from 'node:crypto'

/** What a secret must look like; the text of every error about one. */
export const SECRET_FORM = '"whsec_" followed by base64 of 24 to 64 bytes'

/** The bytes of a `whsec_` secret, or null when it is malformed, shorter than 24 bytes or longer than 64. */
export function secretBytes(secret: string): Buffer | null {
  const text = /^whsec_([A-Za-z0-9+/]+={0,2})$/.exec(secret)?.[1]
  if (text === undefined || text.length % 4 !== 0) return null
  const bytes = Buffer.from(text, 'base64')
  return isSecret(bytes) ? bytes : null
}

const isSecret = ({ length }: Buffer): boolean => length >= 24 && length <= 64

/**
 * Value of `webhook-signature`: the current secret first, then those that are still valid.
 *
 * @param timestamp whole Unix seconds of this attempt
 */
export function signatureHeader(secrets: readonly Buffer[], id: string, timestamp: string, body: Buffer): string {
  const signed = `${id}.${timestamp}.`
  const one = (secret: Buffer) => `v1,${createHmac('sha256', secret).update(signed).update(body).digest('base64')}`
  return secrets.length === 1 ? one(secrets[0] as Buffer) : secrets.map(one).join(' ')
}

/**
 * Does any `v1` entry of this header come from one of the secrets? Compared in constant time. Bytes that are no secret
 * verify nothing; the timestamp's age is the caller's to judge.
 */
export function isSigned(
  secrets: readonly Buffer[],
  id: string,
  timestamp: string,
  body: Buffer,
  header: string,
): boolean {
  if (id === '' || !/^\d{1,15}$/.test(timestamp)) return false
  const wanted = secrets.filter(isSecret).map((secret) => Buffer.from(signatureHeader([secret], id, timestamp, body)))
  const given = header.split(' ').map((entry) => Buffer.from(entry))
  // Every pair, found or not: the time taken says nothing about which one it was.
  return given.flatMap((g) => wanted.map((w) => g.length === w.length && timingSafeEqual(g, w))).includes(true)
}

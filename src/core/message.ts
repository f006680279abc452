// What a message must look like. The SQL function and the table's CHECKs hold the same limits; a test runs one table of values through all three.

export const PAYLOAD_LIMIT_BYTES = 262_144
/** Of one call that writes many. */
export const MESSAGES_LIMIT = 1_000
export const PAYLOADS_LIMIT_BYTES = 16_777_216
const TEN_YEARS_MS = 315_360_000_000

export interface Problem {
  readonly field: string
  readonly problem: string
}

const encoder = new TextEncoder()
const bytes = (text: string): number => encoder.encode(text).length

type Rule = readonly [max: number, forbidden: RegExp | null, form: string]

const RULES: Readonly<Record<string, Rule>> = {
  key: [255, /[^A-Za-z0-9._:-]/, '1 to 255 of A-Z a-z 0-9 . _ : -'],
  type: [200, /[^!-~]/, '1 to 200 printable ASCII characters without spaces'],
  payloadRef: [2_000, null, '1 to 2000 bytes'],
  orderingKey: [400, null, '1 to 400 bytes'],
  correlationId: [255, /[^!-~]/, '1 to 255 printable ASCII characters without spaces'],
}

/** The first field of these that is malformed, with its length and the limit. Absent fields are undefined. */
export function textProblem(fields: Readonly<Record<string, unknown>>): Problem | null {
  for (const [field, value] of Object.entries(fields)) {
    const [max, forbidden, form] = RULES[field] as Rule
    if (value === undefined) continue
    if (typeof value !== 'string')
      return {
        field,
        problem: `is ${typeof value === 'object' ? 'an object' : `a ${typeof value}`}; it must be a string, ${form}`,
      }
    const length = bytes(value)
    if (length < 1 || length > max || forbidden?.test(value) || value.includes('\0') || !value.isWellFormed()) {
      return { field, problem: `is ${length} bytes long; it must be ${form}` }
    }
  }
  return null
}

/** W3C traceparent. */
export const isTraceparent = (value: unknown): boolean =>
  typeof value === 'string' && value.length === 55 && !/[^0-9a-f-]/.test(value)

export const isDelayMs = (value: unknown): boolean =>
  Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) <= TEN_YEARS_MS

/**
 * The bytes to send, as text: an object or array is serialised once; a string is taken as JSON text and kept as it is,
 * so that key order, 64-bit integers and spelling survive.
 */
export function payloadText(payload: unknown): { readonly text: string } | Problem {
  const field = 'payload'
  if (typeof payload !== 'string' && (typeof payload !== 'object' || payload === null)) {
    return {
      field,
      problem: `is ${payload === null ? 'null' : `a ${typeof payload}`}; it must be an object, an array, or a string of JSON text`,
    }
  }
  if (ArrayBuffer.isView(payload) || payload instanceof ArrayBuffer) return formless(payload.constructor.name)
  const text = typeof payload === 'string' ? payload : stringified(payload)
  if (typeof text !== 'string') return text
  if (text.includes('\0') || !text.isWellFormed())
    return {
      field,
      problem: 'contains a raw U+0000 or a lone surrogate, which have no UTF-8 form: escape them (\\u0000)',
    }
  if (!/^[ \t\r\n]*[{[]/.test(text)) return { field, problem: 'is not a JSON object or array' }
  const length = bytes(text)
  if (length > PAYLOAD_LIMIT_BYTES)
    return {
      field,
      problem: `is ${length} bytes long; the limit is ${PAYLOAD_LIMIT_BYTES}: store it elsewhere and pass payloadRef`,
    }
  return { text }
}

const formless = (name: string): Problem => ({
  field: 'payload',
  problem: `is or contains what has no JSON form (${name}); pass an object, an array, or a string of JSON text`,
})

function stringified(value: object): string | Problem {
  const field = 'payload'
  let lost: string | null = null
  try {
    const text = JSON.stringify(value, (_, part) => {
      lost ??= lossOf(part)
      return part
    })
    if (lost === 'promise') return { field, problem: 'is or contains a promise or the like; pass what it resolves to' }
    return lost === null ? (text ?? 'undefined') : formless(lost)
  } catch {
    return {
      field,
      problem: 'cannot be serialised: it contains a cycle, a BigInt, or something that throws; pass JSON text instead',
    }
  }
}

const OF_JSON = new Set(['Object', 'Array', 'Number', 'String', 'Boolean'])

/** What keeps its content where JSON does not look would be sent as `{}`, what has not come yet as the query that it is, and NaN as null. */
function lossOf(part: unknown): string | null {
  if (typeof part === 'number' && !Number.isFinite(part)) return String(part)
  if (typeof part !== 'object' || part === null) return null
  if (typeof (part as { then?: unknown }).then === 'function') return 'promise'
  // By its tag, which is the same in every realm.
  const tag = Object.prototype.toString.call(part).slice(8, -1)
  if (OF_JSON.has(tag)) return null
  return tag === 'Error' || ArrayBuffer.isView(part) || Object.keys(part).length === 0 ? tag : null
}

/** What is wrong with many payloads that are each well-formed, or null. */
export function payloadsProblem(texts: readonly (string | null)[]): Problem | null {
  let total = 0
  for (const [i, text] of texts.entries()) {
    total += text === null ? 0 : bytes(text)
    if (total > PAYLOADS_LIMIT_BYTES)
      return {
        field: 'messages',
        problem: `up to number ${i + 1} have payloads of ${total} bytes; the limit is ${PAYLOADS_LIMIT_BYTES} a call: call several times in the same transaction`,
      }
  }
  return null
}

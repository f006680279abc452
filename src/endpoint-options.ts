// The settings of an endpoint, once: type, default, range and what each means.
import type { OptionTable } from './options.ts'

const MINUTE = 60_000
const DAY = 86_400_000

/** Settings of an endpoint, for `putEndpoint` and `outledger endpoint put`. */
export const ENDPOINT_OPTIONS = {
  name: { type: 'string', doc: 'Name that enqueue uses: 1 to 200 of A-Z a-z 0-9 . _ : -' },
  url: { type: 'string', doc: 'Where to POST; https, unless allowInsecure' },
  secret: {
    type: 'string',
    doc: 'Reference to the signing secret: env:NAME, file:/path, or what resolveSecret understands',
  },
  class: {
    type: 'string',
    default: 'default',
    doc: 'Kind of destination, such as payment-ledger or clinic; stands in logs and metrics instead of names',
  },
  region: {
    type: 'string',
    default: null,
    doc: 'Where the receiver keeps what it is sent, such as eu; a change waits for a review',
  },
  processor: {
    type: 'string',
    default: null,
    doc: 'Who processes what is sent there, a company or a contract; a change waits for a review',
  },
  authorization: {
    type: 'string',
    default: null,
    doc: 'Reference to the value of an authorization header, for receivers that want one',
  },
  headers: {
    type: 'string',
    default: null,
    doc: 'JSON object of further headers; may not replace ours. Views show them: a secret belongs in authorization',
  },
  timeoutMs: {
    type: 'integer',
    default: null,
    min: 50,
    max: 30 * MINUTE,
    doc: "Deadline of one request; null: the poller's timeoutMs",
  },
  retryDelayMs: {
    type: 'integer',
    default: 300_000,
    min: 0,
    max: DAY,
    doc: 'Pause after a failed attempt, plus up to 10 %',
  },
  backoffFactor: {
    type: 'number',
    default: 1,
    min: 1,
    max: 10,
    doc: 'Each further pause is so many times the one before',
  },
  maxDelayMs: { type: 'integer', default: DAY, min: 0, max: 7 * DAY, doc: 'Longest pause that backoff grows to' },
  horizonMs: {
    type: 'integer',
    default: 3 * DAY,
    min: 0,
    max: 365 * DAY,
    doc: 'An attempt that fails later than this after the first ends the delivery: dead, exhausted',
  },
  maxAttempts: {
    type: 'integer',
    default: null,
    min: 1,
    max: 100_000,
    doc: 'Failed attempts before the delivery ends: dead, exhausted; one that was lost or cut ends nothing; null: only the horizon counts',
  },
  keyWindowMs: {
    type: 'integer',
    default: 30 * DAY,
    min: 0,
    max: 3_650 * DAY,
    doc: 'How long the receiver remembers a key; nothing that may have been applied is sent again later',
  },
  concurrency: {
    type: 'integer',
    default: 64,
    min: 1,
    max: 10_000,
    doc: 'Requests in flight to this endpoint, all pollers together',
  },
  partitions: {
    type: 'integer',
    default: 8,
    min: 1,
    max: 1_024,
    doc: 'Lanes of this endpoint, the unit that pollers share; at most concurrency',
  },
  onDead: {
    type: 'string',
    default: 'block',
    oneOf: ['block', 'skip'],
    doc: 'When the head of an ordering key goes dead: block the key for a person, or skip to the next',
  },
  retentionDays: {
    type: 'integer',
    default: 30,
    min: 0,
    max: 36_500,
    doc: 'How long an ended delivery is kept, counted from its end',
  },
  captureResponse: {
    type: 'boolean',
    default: false,
    doc: 'Keep up to 2 KiB of each response body in the ledger; it may hold personal data',
  },
  statusPolicy: {
    type: 'string',
    default: null,
    doc: 'JSON object of HTTP statuses from 300 on that mean something else here: {"404":"retry","501":"dead"}',
  },
  on409: {
    type: 'string',
    default: 'retry',
    oneOf: ['retry', 'delivered', 'dead'],
    doc: 'What a 409 means: the key is at work (retry), was taken before (delivered), or can never be taken (dead)',
  },
  onUnknown: {
    type: 'string',
    default: 'retry',
    oneOf: ['retry', 'review'],
    doc: 'What follows an unknown outcome; review, for a receiver that recognises no key: it is never sent again by itself',
  },
  keyFormat: {
    type: 'string',
    default: 'bare',
    oneOf: ['bare', 'sf-string'],
    doc: 'Form of the idempotency-key header; sf-string quotes it, as the expired IETF draft has it',
  },
  allowInsecure: { type: 'boolean', default: false, doc: 'Permit http:' },
  allowPrivate: { type: 'boolean', default: false, doc: 'Permit loopback, private and other special addresses' },
} as const satisfies OptionTable

/** Options of `reviewEndpoint` and `outledger endpoint review`. */
export const REVIEW_OPTIONS = {
  version: {
    type: 'integer',
    default: null,
    min: 1,
    max: 2_147_483_647,
    doc: 'The version that was looked at: refused when the endpoint has changed since',
  },
} as const satisfies OptionTable

/** Options of `rotateSecret` and `outledger endpoint rotate-secret`. */
export const ROTATE_OPTIONS = {
  secret: {
    type: 'string',
    doc: 'Reference to the new signing secret: env:NAME, file:/path, or what resolveSecret understands',
  },
  keepHours: {
    type: 'integer',
    default: 24,
    min: 0,
    max: 8_760,
    doc: 'How long the old secret signs beside it; 0: only the new one signs, from now on',
  },
} as const satisfies OptionTable

// Rows as the verbs of src/sql take and leave them: an endpoint with one lane, messages, leases, results.
import { randomUUID } from 'node:crypto'
import type { Said } from '../../src/health.ts'
import { type Claim, claim, claimSuspect } from '../../src/sql/claim.ts'
import type { EndpointRow, EndpointSettings } from '../../src/sql/endpoint.ts'
import { putEndpoint } from '../../src/sql/endpoint-put.ts'
import { type EnqueueRow, enqueue } from '../../src/sql/enqueue.ts'
import type { Executor } from '../../src/sql/executor.ts'
import type { Lease } from '../../src/sql/release.ts'
import type { Result } from '../../src/sql/settle.ts'
import type { TestDatabase } from './database.ts'

/** Priority class 1, partition 0: the only lane of an endpoint with one partition. */
export const LANE = 1024

export const endpointSettings = (more: Partial<EndpointSettings> = {}): EndpointSettings => ({
  name: 'clinic',
  class: 'clinic',
  region: null,
  processor: null,
  url: 'https://clinic.test/hooks',
  secret: 'env:NONE',
  authorization: null,
  headers: null,
  timeoutMs: null,
  retryDelayMs: 300_000,
  backoffFactor: 1,
  maxDelayMs: 86_400_000,
  horizonMs: 259_200_000,
  maxAttempts: null,
  keyWindowMs: 2_592_000_000,
  concurrency: 64,
  partitions: 1,
  onDead: 'block',
  retentionDays: 30,
  captureResponse: false,
  statusPolicy: null,
  on409: 'retry',
  onUnknown: 'retry',
  keyFormat: 'bare',
  allowInsecure: false,
  allowPrivate: false,
  ...more,
})

export async function addEndpoint(db: Executor, more: Partial<EndpointSettings> = {}): Promise<EndpointRow> {
  const row = await putEndpoint(db, endpointSettings(more), { by: 'a test', version: null, changes: true })
  if (row === null) throw new Error('the endpoint was there already')
  return row
}

export const message = (key: string, more: Partial<EnqueueRow> = {}): EnqueueRow => ({
  endpoint: 'clinic',
  key,
  type: 'eligibility.changed',
  payload: '{"patient":1842}',
  orderingKey: null,
  delayMs: null,
  notBefore: null,
  correlationId: null,
  traceparent: null,
  payloadRef: null,
  retentionDays: null,
  ...more,
})

/** Enqueue in a transaction of its own; returns the id. */
export async function add(db: Executor, key: string, more: Partial<EnqueueRow> = {}): Promise<string> {
  const { id, inserted } = await enqueue(db, message(key, more))
  if (id === null || !inserted) throw new Error(`${key} was not inserted`)
  return id
}

export type Leased = Claim & { readonly token: string }

/** Claim what is due in the endpoint's one lane. */
export async function lease(
  db: Executor,
  { id }: Pick<EndpointRow, 'id'>,
  { limit = 100, leaseMs = 30_000, poller = 'p-1', floor = null as number | null, slackMs = 0 } = {},
): Promise<Leased[]> {
  const lanes = [{ endpointId: id, lane: LANE, limit, floor }]
  const token = randomUUID()
  const { claims } = await claim(db, { lanes, total: limit, slackMs, leaseMs, timeoutMs: 20_000, token, poller })
  return claims.map((row) => ({ ...row, token }))
}

/** Claim the one that has to be tried alone, if it is due. */
export async function leaseSuspect(db: Executor, ids: readonly string[]): Promise<Leased[]> {
  const token = randomUUID()
  const { claims } = await claimSuspect(db, { ids, leaseMs: 30_000, timeoutMs: 20_000, token, poller: 'p-1' })
  return claims.map((row) => ({ ...row, token }))
}

/** This lease, as it is given back. */
export const given = ({ delivery_id: deliveryId, token, standing }: Leased): Lease => ({
  deliveryId,
  token,
  probe: standing === 'probe',
})

/** A plain 200 for this lease, or what `more` says. */
export const result = ({ delivery_id, number, token }: Leased, more: Partial<Result> = {}): Result => ({
  deliveryId: delivery_id,
  number,
  token,
  outcome: 'delivered',
  verdict: 'delivered',
  reason: null,
  endReason: null,
  delayMs: 0,
  httpStatus: 200,
  phase: 'done',
  requestSent: true,
  targetHost: 'clinic.test',
  tookMs: 40,
  agoMs: 0,
  bytesOut: 16,
  bytesIn: 2,
  retryAfterMs: null,
  replayed: false,
  excerpt: null,
  ...more,
})

/** What an attempt says of its endpoint: nothing bad. */
export const said = (more: Partial<Said> = {}): Said => ({
  ...{
    endpointId: 1,
    version: 1,
    sign: 'success',
    backoffMs: 0,
    standing: null,
    sparedMs: 0,
    exhausted: false,
  },
  ...more,
})

/** Failures, for `result`. */
export const RETRY = {
  ...{ outcome: 'not_applied', verdict: 'retry', reason: 'http_429', httpStatus: 429, delayMs: 300_000 },
} as const satisfies Partial<Result>
export const TIMEOUT = {
  ...{ outcome: 'unknown', verdict: 'retry', reason: 'timeout', httpStatus: null, phase: 'headers', delayMs: 300_000 },
} as const satisfies Partial<Result>
export const GONE = {
  ...{ outcome: 'rejected', verdict: 'dead', reason: 'gone', endReason: 'gone', httpStatus: 410 },
} as const satisfies Partial<Result>

/** Let the lease of this key run out: ten minutes pass. */
export const expire = (db: TestDatabase, key: string): Promise<void> => db.age(key, '10 minutes')

/** What the view says of each of these deliveries, oldest first. */
export const states = (db: TestDatabase): Promise<{ key: string; state: string }[]> =>
  db.query('select key, state from outbox.deliveries order by id')

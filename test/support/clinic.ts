// The endpoint that most tests deliver to, what they enqueue for it, and a poller in this process.
import { after } from 'node:test'
import { createPoller, type Message, outbox, type Poller, type PollerGiven, putEndpoint } from '../../src/index.ts'
import type { TestDatabase } from './database.ts'
import { testSecret } from './secret.ts'

type Client = Pick<TestDatabase, 'sql'>
type Settings = Partial<Parameters<typeof putEndpoint>[1]>
type Options = NonNullable<Parameters<typeof putEndpoint>[2]>

/** Create or change the endpoint `clinic` (or `settings.name`) at a peer on loopback. */
export function putClinic(db: Client, url: string, settings: Settings = {}, options: Options = {}) {
  const given = { name: 'clinic', url, secret: testSecret(), allowInsecure: true, allowPrivate: true, ...settings }
  return putEndpoint(db.sql, given, options)
}

/** Commit one delivery for each key, in one transaction. */
export async function enqueue(db: Client, keys: readonly string[], message: Partial<Message> = {}) {
  await db.sql.begin(async (tx) => {
    for (const key of keys)
      await outbox.enqueue(tx, { key, endpoint: 'clinic', type: 'eligibility.changed', payload: { key }, ...message })
  })
}

/** What earlier tests did to endpoints is not held against them. */
export const forgive = (db: TestDatabase) =>
  db.query(
    `update outbox.endpoint set failures = 0, failing_since = null, rejections = 0, trip_ms = null, tripped_until = null,
       backoff_until = null, paused_at = null, paused_reason = null`,
  )

export const keysOf = (prefix: string, n: number): string[] => Array.from({ length: n }, (_, i) => `${prefix}-${i + 1}`)

/** A poller in this process; stopped at the end of the file at the latest. */
export function testPoller(db: { readonly url: string }, given: Partial<PollerGiven> = {}): Poller {
  const poller = createPoller({ databaseUrl: db.url, ...given })
  after(() => poller.stop({ graceMs: 0 }))
  return poller
}

/** One round of a poller that is new, and gone afterwards: it owns every lane and remembers nothing. */
export async function deliverOnce(db: { readonly url: string }, given: Partial<PollerGiven> = {}) {
  const poller = createPoller({ databaseUrl: db.url, ...given })
  try {
    return await poller.runOnce()
  } finally {
    await poller.stop({ graceMs: 0 })
  }
}

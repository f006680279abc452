// An app with payments, each of which is to be announced, and the reconciliation that knows it.
import { defineReconciliation, type Message } from '../../src/index.ts'
import type { TestDatabase } from './database.ts'
import { addEndpoint } from './ledger.ts'

export interface Payment {
  readonly id: number
  readonly cents: number
}

/** The event as the app enqueues it. */
export const announcement = ({ id, cents }: Payment): Message => ({
  ...{ key: `capture-${id}`, endpoint: 'clinic', type: 'payment.captured', payload: { payment: id, cents } },
})

/** What a run has counted: checked, missing, enqueued, mismatched. */
export const counts = (run: Record<'checked' | 'missing' | 'enqueued' | 'mismatched', number>): number[] => [
  run.checked,
  run.missing,
  run.enqueued,
  run.mismatched,
]

export async function payments(db: TestDatabase) {
  const clinic = await addEndpoint(db)
  await addEndpoint(db, { name: 'ledger' })
  await db.query('create table payment (id int primary key, cents int not null)')
  return {
    clinic,
    captured: defineReconciliation<Payment>({
      name: 'captured-payments',
      expected: 'select id, cents from payment; -- each is announced',
      pageBy: 'id',
      toMessage: announcement,
    }),
    /** Nothing was paid, nothing enqueued. */
    fresh: () =>
      db.query('truncate payment, outbox.delivery, outbox.queue, outbox.receipt, outbox.attempt, outbox.tombstone'),
    /** Payments of these numbers, 100 cents times the number each; nothing is enqueued. */
    pay: (from: number, to = from) =>
      db.query('insert into payment select i, 100 * i from generate_series($1::int, $2::int) i', from, to),
    keysBy: async (who: string) =>
      (
        await db.query<{ key: string }>('select key from outbox.deliveries where discovered_by = $1 order by id', who)
      ).map(({ key }) => key),
  }
}

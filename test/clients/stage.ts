// What the tests of a client share: events under keys of its own, and what became of them.
import assert from 'node:assert/strict'
import type { OutledgerError, outbox } from '../../src/index.ts'
import { anyExecutor, type Handle } from '../../src/transaction.ts'
import type { TestDatabase } from '../support/database.ts'
import type { Subject } from './subject.ts'

export const undo = new Error('undo')

/** The work, and then an error of the app. */
export const undone =
  <T>(work: (tx: Handle) => Promise<T>) =>
  async (tx: Handle): Promise<never> => {
    await work(tx)
    throw undo
  }

export const refusalOf = (work: Promise<unknown>): Promise<OutledgerError> =>
  work.then(
    () => assert.fail('accepted'),
    (error) => error as OutledgerError,
  )

/** Needs the endpoints clinic and ledger, and a table note (n text). */
export function stageOf(db: TestDatabase, { name }: Subject) {
  const prefix = name.replace(/[^A-Za-z.]+/g, '-')
  return {
    prefix,
    event: (key: string, more: Partial<outbox.Message> = {}): outbox.Message => ({
      key: `${prefix}:${key}`,
      endpoint: 'clinic',
      type: 't',
      payload: { ssn: 'SECRET' },
      ...more,
    }),
    /** The business write. */
    note: (tx: Handle, text: string) =>
      anyExecutor(tx).run('insert into note values ($1::text)', [`${prefix}:${text}`]),
    noted: async (start: string) =>
      (await db.query('select from note where starts_with(n, $1)', `${prefix}:${start}`)).length,
    /** Keys in the outbox that begin so; all of them are open work. */
    async stored(start: string): Promise<string[]> {
      const rows = await db.query<{ key: string; open: boolean }>(
        `select d.key, q.delivery_id is not null as open from outbox.delivery d left join outbox.queue q on q.delivery_id = d.id
         where starts_with(d.key, $1) order by d.id`,
        `${prefix}:${start}`,
      )
      assert.ok(rows.every(({ open }) => open))
      return rows.map(({ key }) => key.slice(prefix.length + 1))
    },
  }
}

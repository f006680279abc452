// What enqueue promises about the transaction, the same for every client.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Handle, outbox } from '../../src/index.ts'
import { anyExecutor } from '../../src/transaction.ts'
import type { TestDatabase } from '../support/database.ts'
import { refusalOf, stageOf, undo, undone } from './stage.ts'
import type { Subject } from './subject.ts'

export function transactions(db: TestDatabase, subject: Subject): void {
  const { name, roots, alike, begin, savepoint, stateOf } = subject
  const { event, note, noted, stored } = stageOf(db, subject)

  // case C40
  test(`${name}: a commit sends, before or after the business write; a rollback leaves nothing`, async () => {
    const first = await begin(async (tx) => {
      const result = await outbox.enqueue(tx, event('commit-1'))
      await note(tx, 'commit')
      return result
    })
    const second = await begin(async (tx) => {
      await note(tx, 'commit')
      return outbox.enqueue(tx, event('commit-2'))
    })
    assert.deepEqual(
      [first, second],
      [
        { inserted: true, id: `${first.id}` },
        { inserted: true, id: `${second.id}` },
      ],
    )
    assert.match(`${first.id}`, /^\d+$/)
    await assert.rejects(begin(undone((tx) => outbox.enqueue(tx, event('commit-3')))), undo)
    await assert.rejects(
      begin(
        undone(async (tx) => {
          await note(tx, 'commit')
          await outbox.enqueueMany(tx, [event('commit-4'), event('commit-5')])
        }),
      ),
      undo,
    )
    assert.deepEqual(await stored('commit'), ['commit-1', 'commit-2'])
    assert.equal(await noted('commit'), 2)
  })

  test(`${name}: what is enqueued in a savepoint goes with it, and the transaction goes on`, async () => {
    await begin(async (tx) => {
      await savepoint(tx, (inner) => outbox.enqueue(inner, event('savepoint-kept')))
      await assert.rejects(
        savepoint(
          tx,
          undone((inner) => outbox.enqueue(inner, event('savepoint-undone'))),
        ),
        undo,
      )
      await assert.rejects(
        savepoint(tx, (inner) => outbox.enqueue(inner, event('savepoint-unknown', { endpoint: 'nowhere' }))),
        { code: 'unknown_endpoint' },
      )
      await outbox.enqueue(tx, event('savepoint-after'))
    })
    assert.deepEqual(await stored('savepoint'), ['savepoint-kept', 'savepoint-after'])
  })

  test(`${name}: a savepoint that is undone first takes nothing from the transaction`, async () => {
    await begin(async (tx) => {
      await assert.rejects(
        savepoint(
          tx,
          undone((inner) => outbox.enqueue(inner, event('first-undone'))),
        ),
        undo,
      )
      await outbox.enqueue(tx, event('first-after'))
    })
    assert.deepEqual(await stored('first'), ['first-after'])
  })

  // case C42
  for (const [what, root] of Object.entries(roots))
    test(`${name}: ${what} is refused by enqueue, and taken by enqueueStandalone`, async () => {
      const key = `twin-${what.replaceAll(' ', '-')}`
      for (const write of [
        () => outbox.enqueue(root, event(`${key}-refused`)),
        () => outbox.enqueueMany(root, [event(`${key}-refused`)]),
      ])
        await assert.rejects(write(), {
          name: 'OutledgerError',
          code: 'not_a_transaction',
          message: new RegExp(
            `^enqueue needs the transaction of the business write, .+, and ${alike ? 'none is open here' : 'was given the client itself'}.*; call enqueueStandalone if there is no business write$`,
          ),
        })
      assert.deepEqual(await stored(key), [])
      assert.equal((await outbox.enqueueStandalone(root, event(key))).inserted, true)
      assert.deepEqual(await stored(key), [key])
    })

  // case C40
  test(`${name}: a handle that has outlived its transaction is refused`, async () => {
    const committed = await begin(async (tx) => {
      await note(tx, 'outlived')
      return { tx }
    })
    let rolledBack: Handle | undefined
    await assert.rejects(
      begin(
        undone(async (tx) => {
          rolledBack = tx
          await outbox.enqueue(tx, event('outlived'))
        }),
      ),
      undo,
    )
    for (const tx of [committed.tx, rolledBack as Handle]) {
      await assert.rejects(outbox.enqueue(tx, event('outlived')), { code: 'not_a_transaction' })
      await assert.rejects(outbox.enqueueMany(tx, [event('outlived')]), { code: 'not_a_transaction' })
    }
    assert.deepEqual(await stored('outlived'), [])
  })

  test(`${name}: in a transaction that has failed, the error says what to do`, async () => {
    const aborted = { code: 'transaction_aborted', message: /roll it back, or back to a savepoint$/ }
    const failed = undone(async (tx) => {
      await assert.rejects(anyExecutor(tx).run('select 1/0', []))
      await assert.rejects(outbox.enqueue(tx, event('aborted')), aborted)
      await assert.rejects(outbox.enqueueMany(tx, [event('aborted')]), aborted)
    })
    await assert.rejects(begin(failed), undo)
    assert.deepEqual(await stored('aborted'), [])
  })

  test(`${name}: an error of the database itself comes as the client tells it, without the payload`, async () => {
    const failed = begin(async (tx) => {
      await anyExecutor(tx).run('select from outbox.endpoint', [])
      await outbox.enqueueStandalone(db.sql, event('serial'))
      await outbox.enqueue(tx, event('serial'))
    }, 'repeatable read')
    const error = await refusalOf(failed)
    assert.equal(stateOf?.(error) ?? error.code, '40001', `${error}`)
    assert.doesNotMatch(JSON.stringify([error, error.message, error.stack, error.cause ?? null]), /SECRET/)
  })

  test(`${name}: without the schema the error says what to run`, async () => {
    const missing = { code: 'schema_missing', message: /run "outledger migrate"$/ }
    const renamed = undone(async (tx) => {
      await anyExecutor(tx).run('alter schema outbox rename to elsewhere', [])
      await assert.rejects(outbox.enqueue(tx, event('missing')), missing)
    })
    await assert.rejects(begin(renamed), undo)
  })
}

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Events } from '../../src/events.ts'
import { Settler } from '../../src/settler.ts'
import type { Executor } from '../../src/sql/executor.ts'
import { testDatabase } from '../support/database.ts'
import { add, addEndpoint, expire, GONE, lease, result, said } from '../support/ledger.ts'
import { begin } from '../support/session.ts'

const db = await testDatabase()
const endpoint = await addEndpoint(db)

function gate(): { passed: Promise<void>; open: () => void } {
  let open = () => {}
  const passed = new Promise<void>((resolve) => {
    open = resolve
  })
  return { passed, open }
}

/** Each statement is a transaction of its own; that of the `nth` stays open until it is told to commit. */
function holding(nth: number): Executor & { ran: Promise<void>; commit: () => void } {
  const [ran, go] = [gate(), gate()]
  let n = 0
  return {
    ran: ran.passed,
    commit: go.open,
    async run(text, values) {
      const mine = ++n === nth
      const session = await begin(db)
      const rows = await session.run(text, values)
      if (mine) {
        ran.open()
        await go.passed
      }
      await session.commit()
      return rows as never
    },
  }
}

const settler = (executor: Executor, name: string) =>
  new Settler({ db: executor, name, events: new Events(), signal: new AbortController().signal })

// case C02
for (const order of ['late', 'settle'] as const) {
  test(`two pollers write a late 200 and a dead end at once, ${order} commits first: the delivery is delivered`, async () => {
    const key = `race-${order}`
    const id = await add(db, key)
    const [a] = await lease(db, endpoint)
    await expire(db, key)
    const [b] = await lease(db, endpoint, { poller: 'p-2' })
    // A's first statement is the settle that finds itself fenced, its second the late result.
    const [one, two] = [holding(2), holding(1)]
    const [first, second] = [settler(one, 'p-1'), settler(two, 'p-2')]
    second.push({ ...result(b ?? assert.fail(), GONE), endedAt: performance.now(), said: said() })
    await two.ran
    first.push({ ...result(a ?? assert.fail()), endedAt: performance.now(), said: said() })
    await one.ran
    const both = [
      { executor: one, writer: first },
      { executor: two, writer: second },
    ]
    for (const { executor, writer } of order === 'late' ? both : both.toReversed()) {
      executor.commit()
      await writer.flush()
    }
    const [row] = await db.query(
      `select d.state, d.certainty, d.terminal_reason, (select count(*)::int from outbox.queue) as open
       from outbox.deliveries d where d.id = $1`,
      id,
    )
    assert.deepEqual(row, {
      ...{ state: 'delivered', certainty: 'delivered', terminal_reason: 'late, after dead (gone)', open: 0 },
    })
  })
}

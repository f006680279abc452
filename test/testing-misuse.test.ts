// What would make people's own tests pass by chance is refused.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createPoller } from '../src/index.ts'
import { drain, enqueued } from '../src/testing.ts'
import { testDatabase } from './support/database.ts'

const db = await testDatabase()

test('drain takes nothing but what it knows: an option that is misspelt would leave retries undone without a word', async () => {
  const poller = createPoller({ databaseUrl: db.url })
  for (const [wrong, message] of [
    [{ retry: true }, /unknown option "retry"/],
    [{ limit: Number.NaN }, /limit is NaN/],
    [{ limit: 0 }, /limit is 0/],
  ] as const)
    await assert.rejects(drain(poller, wrong as object), { code: 'invalid_option', message })
  await assert.rejects(drain({} as never), { code: 'invalid_option', message: /must be a poller/ })
})

test('a poller that was started is not drained, for it runs by itself; after its stop it is', async () => {
  const poller = createPoller({ databaseUrl: db.url, name: 'started' })
  await poller.start()
  await assert.rejects(drain(poller), { code: 'drain_unfinished', message: /poller started was started .*stop\(\) it/ })
  await poller.stop()
  assert.equal((await drain(poller)).claimed, 0)
  await poller.stop()
})

test('a filter of enqueued that does not exist is refused, and does not let everything through', () =>
  assert.rejects(enqueued(db.sql, { typ: 'payment.captured' } as object), {
    code: 'invalid_option',
    message: /"typ"; did you mean "type"\?/,
  }))

// A put of an endpoint that is there already: what counts as a change, and who comes in between.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type EndpointGiven, putEndpoint } from '../src/index.ts'
import { testDatabase } from './support/database.ts'
import { testSecret } from './support/secret.ts'

const db = await testDatabase()
const good: EndpointGiven = { name: 'clinic', url: 'https://clinic.example/hooks', secret: testSecret() }

test('a put that changes nothing is on record and leaves the version to those who have looked at it', async () => {
  const before = await putEndpoint(db.sql, good)
  const records = () => db.query(`select 1 from outbox.operation where verb = 'endpoint put' and subject = 'clinic'`)
  const { length } = await records()
  assert.deepEqual(await putEndpoint(db.sql, { ...good, class: undefined }), before)
  assert.equal((await records()).length, length + 1)
  assert.equal((await putEndpoint(db.sql, { name: 'clinic', retentionDays: 31 })).version, before.version + 1)
})

test('two people who change different settings at once both find their change', async () => {
  await putEndpoint(db.sql, { ...good, name: 'shared' })
  for (let round = 1; round <= 10; round++) {
    await Promise.all([
      putEndpoint(db.sql, { name: 'shared', concurrency: 64 + round }),
      putEndpoint(db.sql, { name: 'shared', retentionDays: 30 + round }),
    ])
    const [row] = await db.query(`select concurrency, retention_days from outbox.endpoint where name = 'shared'`)
    assert.deepEqual(row, { concurrency: 64 + round, retention_days: 30 + round })
  }
})

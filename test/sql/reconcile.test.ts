import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import { gaps, type Wanted } from '../../src/sql/reconcile.ts'
import { testDatabase } from '../support/database.ts'
import { add, addEndpoint } from '../support/ledger.ts'
import { touchedBy } from '../support/plan.ts'

const db = await testDatabase()
await addEndpoint(db)

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')
const wanted = (key: string, more: Partial<Wanted> = {}): Wanted => ({
  ...{
    key,
    endpoint: 'clinic',
    type: 'eligibility.changed',
    payloadRef: null,
    payloadSha256: sha256('{"patient":1842}'),
  },
  ...more,
})

test('only what is not as wanted comes back, by its number', async () => {
  for (const key of ['same', 'erased', 'erased-other']) await add(db, key)
  await add(db, 'by-reference', { payload: null, payloadRef: 's3://ü "x" \\ {1,2}' })
  await add(db, 'under-quotes', { type: `it's,"{so}"` })
  await add(db, 'erased-reference', { payload: null, payloadRef: 's3://1' })
  await db.query(
    `update outbox.delivery set payload = null, payload_ref = null, erased_at = now() where key like 'erased%'`,
  )
  const reference = { payloadRef: 's3://ü "x" \\ {1,2}', payloadSha256: null }
  assert.deepEqual(
    await gaps(db, [
      wanted('missing-1'),
      wanted('same'),
      wanted('same', { endpoint: 'nowhere' }),
      wanted('same', { type: 't' }),
      wanted('same', { payloadSha256: sha256('{}') }),
      wanted('same', reference),
      wanted('by-reference', reference),
      wanted('by-reference', { ...reference, payloadRef: 's3://other' }),
      wanted('by-reference'),
      wanted('erased'),
      wanted('erased-other', { payloadSha256: sha256('{}') }),
      wanted('erased-reference', { payloadRef: 's3://1', payloadSha256: null }),
      wanted('under-quotes', { type: `it's,"{so}"` }),
      wanted('missing-2'),
    ]),
    [
      { number: 1, gap: 'missing' },
      { number: 3, gap: 'endpoint' },
      { number: 4, gap: 'type' },
      { number: 5, gap: 'payload' },
      { number: 6, gap: 'payload' },
      { number: 8, gap: 'payload' },
      { number: 9, gap: 'payload' },
      { number: 11, gap: 'payload' },
      { number: 14, gap: 'missing' },
    ],
  )
  assert.deepEqual(await gaps(db, []), [])
})

test('a look touches what it was asked for, however much history there is, with statistics from when there was none', async () => {
  await db.query('analyze outbox.delivery, outbox.tombstone')
  await db.query(
    `insert into outbox.delivery (key, endpoint_id, lane, type, payload, payload_sha256, discovered_by, scheduled_at)
     select 'old-' || i, 1, 1024, 't', '{}', sha256('{}'), 'app', now() from generate_series(1, 5000) i`,
  )
  await db.query(
    `insert into outbox.tombstone (key_sha256, delivery_id, ended_at, delete_after, attempts, ending, certainty)
     select sha256(convert_to('gone-' || i, 'UTF8')), i, now(), now() + interval '1 day', 1, 'delivered', 'delivered' from generate_series(1, 5000) i`,
  )
  const keys = ['old', 'gone', 'never'].flatMap((prefix) => Array.from({ length: 20 }, (_, i) => `${prefix}-${i + 1}`))
  let found = 0
  const touched = await touchedBy(db, async (session) => {
    const all = await gaps(
      session,
      keys.map((key) => wanted(key, { type: 't', payloadSha256: sha256('{}') })),
    )
    found = all.length
  })
  assert.equal(found, 20)
  const rows = (table: string) => touched.filter((t) => t.table === table).reduce((sum, t) => sum + t.rows, 0)
  assert.ok(rows('delivery') >= 20 && rows('delivery') <= 60, `${rows('delivery')} rows of delivery`)
  assert.ok(rows('tombstone') >= 20 && rows('tombstone') <= 60, `${rows('tombstone')} rows of tombstone`)
})

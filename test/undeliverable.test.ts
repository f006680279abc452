// Rows that can never be delivered, among others that can.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { putEndpoint, removeEndpoint } from '../src/index.ts'
import { deliverOnce, enqueue, keysOf, putClinic, testPoller } from './support/clinic.ts'
import { testDatabase } from './support/database.ts'
import { startPeer } from './support/peer.ts'
import { begin } from './support/session.ts'

const db = await testDatabase()
const peer = await startPeer()

const states = (prefix: string) =>
  db.query(
    `select state, terminal_reason as reason, attempts, count(*)::int as n from outbox.deliveries
     where key like $1 || '-%' group by 1, 2, 3 order by 1, 2`,
    prefix,
  )

const broken: readonly (readonly [why: string, set: string, reason: string])[] = [
  // 99999 is no port: the CHECK of the table only looks at the scheme.
  ['a URL that cannot be dialled', `url = 'https://clinic.example:99999/'`, 'bad_config'],
  ['a secret that is none', `secret_ref = 'env:OUTLEDGER_TEST_BROKEN'`, 'bad_config'],
  ['an address that it may not reach', `allow_private = false`, 'blocked_address'],
]
process.env.OUTLEDGER_TEST_BROKEN = 'hunter2'

// case C08
for (const [i, [why, set, reason]] of broken.entries())
  test(`of a claim of 100, ${why} ends its one delivery and no other`, async () => {
    const prefix = `c08-${i}`
    await putClinic(db, peer.url, { concurrency: 200, partitions: 1 })
    await putClinic(db, peer.url, { name: `bad-${i}` })
    await db.query(`update outbox.endpoint set ${set}, version = version + 1 where name = 'bad-${i}'`)
    const keys = keysOf(prefix, 99)
    await enqueue(db, keys.slice(0, 50))
    await enqueue(db, [`${prefix}-bad`], { endpoint: `bad-${i}` })
    await enqueue(db, keys.slice(50))
    const before = peer.received.length
    const poller = testPoller(db, { slots: 200 })
    const claims: number[] = []
    poller.on('claimed', ({ count }) => claims.push(count))
    await poller.runOnce()
    await poller.stop()
    assert.deepEqual(claims, [100], 'they were in one claim')
    assert.equal(peer.received.length - before, 99)
    assert.deepEqual(await states(prefix), [
      { state: 'dead', reason, attempts: 1, n: 1 },
      { state: 'delivered', reason: null, attempts: 1, n: 99 },
    ])
    assert.deepEqual(
      await db.query(`select outcome, phase, request_sent, bytes_out from outbox.attempts where key = '${prefix}-bad'`),
      [{ outcome: 'not_applied', phase: 'prepare', request_sent: false, bytes_out: 0 }],
    )
  })

test('a change that nobody has reviewed is not sent to by a claim that was faster than its pause', async () => {
  const name = 'changed'
  await putClinic(db, peer.url, { name })
  await enqueue(db, ['changed-1'], { endpoint: name })
  // What such a claim finds in the row; the pause of the put is what it has passed already.
  await db.query(`update outbox.endpoint set unreviewed = 'host a → b', version = version + 1 where name = '${name}'`)
  const before = peer.received.length
  const poller = testPoller(db)
  const { claimed, released } = await poller.runOnce()
  assert.deepEqual([claimed, released, peer.received.length - before], [1, 1, 0])
  assert.deepEqual(await states('changed'), [{ state: 'waiting', reason: null, attempts: 0, n: 1 }])
  await db.query(`update outbox.endpoint set unreviewed = null, version = version + 1 where name = '${name}'`)
  await db.age('changed-1', '1 minute')
  assert.equal((await poller.runOnce()).delivered, 1)
  await poller.stop()
})

// case C60
test('a delivery whose transaction was open while its endpoint was removed ends dead, unsent, and so does what follows it', async () => {
  const name = 'removed'
  await putClinic(
    db,
    peer.url,
    { name, secret: 'env:OUTLEDGER_TEST_LEAVING' },
    { resolve: () => process.env.OUTLEDGER_TEST_SECRET as string },
  )
  await db.query(
    `update outbox.endpoint set backoff_until = 'infinity', paused_at = now(), paused_reason = 'x' where name = '${name}'`,
  )
  const app = await begin(db)
  const enqueued = (key: string, ordering: string | null) =>
    app.run('select * from outbox.enqueue($1, $2, $3, $4, $5)', [name, key, 'eligibility.changed', '{}', ordering])
  await enqueued('gone-1', null)
  await enqueued('gone-2', 'k')
  await enqueued('gone-3', 'k')
  const { changed } = await removeEndpoint(db.sql, name)
  assert.equal(changed, true, 'nothing was open yet')
  await app.commit()
  const before = peer.received.length
  for (let round = 0; round < 2; round++) await deliverOnce(db)
  assert.equal(peer.received.length, before)
  assert.deepEqual(await states('gone'), [{ state: 'dead', reason: 'endpoint_removed', attempts: 1, n: 3 }])
  assert.deepEqual(
    await db.query(
      `select distinct outcome, reason, phase, request_sent from outbox.attempts where endpoint = '${name}'`,
    ),
    [{ outcome: 'not_applied', reason: 'endpoint_removed', phase: 'prepare', request_sent: false }],
  )
})

test('a poller that knows the endpoint from before sends nothing more to it once it is removed', async () => {
  await putClinic(db, peer.url, { name: 'known' })
  await enqueue(db, ['known-1'], { endpoint: 'known' })
  const poller = testPoller(db)
  await poller.runOnce()
  const app = await begin(db)
  await app.run('select * from outbox.enqueue($1, $2, $3, $4)', ['known', 'known-2', 'eligibility.changed', '{}'])
  await removeEndpoint(db.sql, 'known')
  await app.commit()
  await poller.runOnce()
  assert.deepEqual(
    await db.query(
      `select key, state, terminal_reason as reason from outbox.deliveries where endpoint = 'known' order by id`,
    ),
    [
      { key: 'known-1', state: 'delivered', reason: null },
      { key: 'known-2', state: 'dead', reason: 'endpoint_removed' },
    ],
  )
  // Taken back into service, it is sent to again.
  await putEndpoint(db.sql, { name: 'known' })
  await enqueue(db, ['known-3'], { endpoint: 'known' })
  await poller.runOnce()
  assert.equal(peer.received.at(-1)?.key, 'known-3')
})

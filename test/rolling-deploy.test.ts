// A deploy while deliveries flow: the old poller works on, the schema grows under it, a new one joins, the old one leaves.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { migrate } from '../src/migrate.ts'
import { migrations } from '../src/schema-version.ts'
import { enqueue, keysOf } from './support/clinic.ts'
import { olderSchema } from './support/older-schema.ts'
import { gate, startPeer } from './support/peer.ts'
import { previousVersion } from './support/previous-version.ts'
import { QUICK, runCli, startWorker } from './support/process.ts'
import { testSecret } from './support/secret.ts'
import { until } from './support/until.ts'

const previous = previousVersion()
const skip = previous === null && 'the history of this clone does not reach back to before the newest migration'
const FLAGS = { ...QUICK, 'lease-ms': 30_000, 'timeout-ms': 20_000 }
const TOLERANT = ['--allow-insecure', '--allow-private', '--retry-delay-ms=500', '--concurrency=512']

test('the previous version delivers beside a newer schema and a newer poller: nothing is lost or done twice', {
  skip,
}, async () => {
  assert.ok(previous)
  const ALL = migrations().length
  assert.ok(previous.migrations < ALL)
  const [db, peer, held] = [await olderSchema(previous.migrations), await startPeer(), gate()]
  const failed = new Set<string>()
  const done: string[] = []
  peer.answer(async (response, { key }) => {
    if (key.startsWith('held')) await held.opened
    const fails = key.startsWith('flaky') && !failed.has(key)
    if (fails) failed.add(key)
    else done.push(key)
    response.writeHead(fails ? 500 : 200).end()
  })
  const wave = (when: string) => [...keysOf(`plain-${when}`, 60), ...keysOf(`flaky-${when}`, 40)]
  const keys = [...wave('old'), ...wave('both'), ...keysOf('held', 40), ...wave('new')]
  const count = async (text: string) => (await db.query(text)).length

  const put = ['endpoint', 'put', 'clinic', `--url=${peer.url}`, `--secret=${testSecret()}`, ...TOLERANT]
  const created = await runCli(put, { DATABASE_URL: db.url }, previous.folder)
  assert.equal(created.code, 0, created.stderr)
  const [tooEarly, old] = await Promise.all([
    runCli(['work'], { DATABASE_URL: db.url }),
    startWorker(db, { ...FLAGS, name: 'old' }, previous.folder),
  ])
  assert.equal(tooEarly.code, 1)
  assert.match(tooEarly.stderr, new RegExp(`has ${previous.migrations} of ${ALL} migrations of schema outbox`))

  await enqueue(db, wave('old'))
  await peer.untilReceived(30)
  assert.deepEqual(await migrate(db.url), { applied: ALL - previous.migrations })
  const next = await startWorker(db, { ...FLAGS, name: 'new' })
  await enqueue(db, wave('both'))
  await until('both have delivered on the new schema', () =>
    count(`select from outbox.attempts where key like '%-both-%' having count(distinct poller) = 2`),
  )
  await enqueue(db, keysOf('held', 40))
  await until('the old one has requests in flight', () => count(`select from outbox.queue where leased_by = 'old'`))
  await until('all of them are open', () => peer.open === 40)
  old.kill('SIGTERM')
  await enqueue(db, wave('new'))
  held.open()
  assert.deepEqual(await old.ended, { code: 0, signal: null })
  await until('all is delivered', () =>
    count(`select from outbox.deliveries having count(*) filter (where state = 'delivered') = ${keys.length}`),
  )
  next.kill('SIGTERM')
  assert.deepEqual(await next.ended, { code: 0, signal: null })

  assert.deepEqual(done.toSorted(), keys.toSorted(), 'each key had one effect')
  assert.deepEqual([old.complaints, next.complaints], [[], []])
  const numbers = await db.query<{ key: string; n: number }>('select key, number as n from outbox.attempts')
  const expected = keys.flatMap((key) => (key.startsWith('flaky') ? [1, 2] : [1]).map((n) => `${key} ${n}`))
  assert.deepEqual(numbers.map(({ key, n }) => `${key} ${n}`).sort(), expected.toSorted())
  assert.deepEqual(peer.received.map(({ key, number }) => `${key} ${number}`).sort(), expected.toSorted())
  assert.deepEqual(peer.overlapping, [])
})

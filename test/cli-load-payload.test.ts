// outledger work --load-payload: the app's own function, out of a module of the app's.
import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { enqueue, putClinic } from './support/clinic.ts'
import { testDatabase } from './support/database.ts'
import { startPeer } from './support/peer.ts'
import { QUICK, startWorker } from './support/process.ts'
import { caughtCli } from './support/screen.ts'
import { until } from './support/until.ts'

const [db, peer, folder] = await Promise.all([testDatabase(), startPeer(), mkdtemp(join(tmpdir(), 'outledger-'))])
after(() => rm(folder, { recursive: true }))

const module = async (name: string, text: string) => {
  const path = join(folder, `${name}.mjs`)
  await writeFile(path, text)
  return path
}

test('a poller of the command line loads what deliveries refer to', async () => {
  await putClinic(db, peer.url)
  await enqueue(db, ['by-ref'], { payload: undefined, payloadRef: 'claims/1842' })
  const path = await module('store', 'export default (ref, { key }) => JSON.stringify([ref, key])')
  const worker = await startWorker(db, { ...QUICK, 'load-payload': path })
  await peer.untilReceived(1)
  worker.kill('SIGTERM')
  assert.equal((await worker.ended).code, 0)
  assert.equal(peer.received[0]?.body.toString(), '["claims/1842","by-ref"]')
})

test('pollers that can load nothing leave such deliveries to the one that can', async () => {
  await putClinic(db, peer.url, { name: 'mixed' })
  const path = await module('slow-start', 'export default () => "[]"')
  const flags = { ...QUICK, 'heartbeat-ms': 500 }
  const workers = [await startWorker(db, flags), await startWorker(db, flags)]
  const keys = Array.from({ length: 40 }, (_, i) => `mixed-${i}`)
  for (const key of keys) await enqueue(db, [key], { endpoint: 'mixed', payload: undefined, payloadRef: key })
  workers.push(await startWorker(db, { ...flags, 'load-payload': path }))
  const delivered = () => db.query(`select 1 from outbox.deliveries where endpoint = 'mixed' and state = 'delivered'`)
  await until('all are delivered', async () => {
    // Pauses after a fault grow: time goes on for what waits.
    await db.query(`update outbox.queue set next_attempt_at = clock_timestamp() where token is null`)
    return (await delivered()).length === keys.length
  })
  const declining = await db.query(`select 1 from outbox.pollers where declines = '{mixed}'`)
  assert.equal(declining.length, 2)
  for (const worker of workers) worker.kill('SIGTERM')
  await Promise.all(workers.map(({ ended }) => ended))
})

const modules: readonly (readonly [why: string, text: string | null, problem: RegExp])[] = [
  ['that is not there', null, /importing it failed: Cannot find module/],
  ['that throws', `throw new Error('no bucket\\nof mine')`, /importing it failed: no bucket$/],
  ['that throws no error', 'throw undefined', /importing it failed: unknown$/],
  [
    'without such a function',
    'export const loader = () => "[]"',
    /it exports neither "loadPayload" nor a default that is a function$/,
  ],
  ['that exports a value', 'export const loadPayload = "[]"', /it exports neither/],
]

for (const [why, text, problem] of modules)
  test(`a module ${why} is wrong usage, said in one line before anything begins`, async () => {
    const name = why.replaceAll(' ', '-')
    const path = text === null ? join(folder, 'nowhere.mjs') : await module(name, text)
    const { code, stdout, stderr } = await caughtCli(db.url, ['work', '--load-payload', path])
    assert.equal(code, 2, stderr)
    assert.equal(stdout, '')
    assert.match(stderr, /^outledger: --load-payload is "[^\n]+\n$/)
    assert.match(stderr.trimEnd(), problem)
  })

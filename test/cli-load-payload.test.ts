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

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { after, test } from 'node:test'
import { deliverOnce, enqueue, putClinic } from '../support/clinic.ts'
import { testDatabase } from '../support/database.ts'
import { startPeer } from '../support/peer.ts'

const db = await testDatabase()
const peer = await startPeer()

/** An app that has written its business row and its event, and is about to commit. */
const WRITER = `
import postgres from 'postgres'
import { outbox } from './src/index.ts'
const sql = postgres(process.env.DATABASE_URL, { max: 1 })
await sql.begin(async (tx) => {
  await tx\`insert into payment values ('p-1')\`
  await outbox.enqueue(tx, { key: 'capture-1842', endpoint: 'clinic', type: 'payment.captured', payload: { id: 'p-1' } })
  console.log('written')
  await new Promise(() => setInterval(() => {}, 1000))
})`

// case C40
test('a writer killed between its insert and its commit leaves neither the business row nor the event', async () => {
  await putClinic(db, peer.url)
  await db.query('create table payment (id text primary key)')
  const writer = spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '--eval', WRITER], {
    env: { ...process.env, DATABASE_URL: db.url },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  after(() => writer.kill('SIGKILL'))
  await once(writer.stdout, 'data')
  writer.kill('SIGKILL')
  await once(writer, 'exit')
  // Waits for the lock of the killed session on its key, if that is still being rolled back.
  await enqueue(db, ['capture-1843'])
  assert.equal((await deliverOnce(db)).delivered, 1)
  assert.deepEqual(
    peer.received.map(({ key }) => key),
    ['capture-1843'],
  )
  assert.deepEqual(await db.query('select key from outbox.delivery'), [{ key: 'capture-1843' }])
  assert.deepEqual(await db.query('select * from payment'), [])
})

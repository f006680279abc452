import assert from 'node:assert/strict'
import { test } from 'node:test'
import { enqueue, keysOf, putClinic } from '../support/clinic.ts'
import { testDatabase } from '../support/database.ts'
import { startPeer } from '../support/peer.ts'
import { QUICK, startWorker } from '../support/process.ts'
import { startProxy } from '../support/proxy.ts'
import { until } from '../support/until.ts'

const db = await testDatabase()
const proxy = await startProxy(db.url)
const peer = await startPeer()

// case C14
test('a poller lives through a database that falls silent and refuses new connections, and goes on when it is back', async () => {
  await putClinic(db, peer.url)
  const worker = await startWorker(proxy, { ...QUICK, 'database-deadline-ms': 300 })
  await until('its heartbeat', async () => (await db.query('select 1 from outbox.poller')).length === 1)
  proxy.vanish()
  const told = (code: string) => worker.log.some((line) => line.code === code)
  await until('a statement has missed its deadline, and the next connection was refused', () => {
    return told('database_timeout') && told('ECONNREFUSED')
  })
  await enqueue(db, keysOf('meanwhile', 10))
  await proxy.open()
  await until('all are delivered', async () => (await db.query('select 1 from outbox.receipt')).length === 10, 15_000)
  worker.kill('SIGTERM')
  assert.deepEqual(await worker.ended, { code: 0, signal: null })
  assert.deepEqual(worker.complaints, [])
  assert.deepEqual(
    worker.log.filter(({ level }) => Number(level) >= 50),
    [],
  )
})

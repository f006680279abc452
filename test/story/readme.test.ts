// The README's example is run as it stands there, against a real database and a real receiver.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { testDatabase } from '../support/database.ts'
import { startPeer } from '../support/peer.ts'
import { testSecretValue } from '../support/secret.ts'

const root = new URL('../..', import.meta.url).pathname

test('the example of the README delivers capture-1842, and its SQL shows it', async (t) => {
  const readme = await readFile(join(root, 'README.md'), 'utf8')
  const example = /```ts\n([\s\S]+?)```/.exec(readme)?.[1]
  assert.ok(example)
  assert.ok(example.trim().split('\n').length <= 22, 'the example is about twenty lines')
  const db = await testDatabase()
  const peer = await startPeer()
  await db.query('create table payment (id int primary key, cents int)')
  // Inside the project, so that the package's dependencies and its own name resolve.
  const folder = join(root, 'node_modules', `.readme-${process.pid}`)
  t.after(() => rm(folder, { recursive: true, force: true }))
  await mkdir(folder)
  const file = join(folder, 'example.mts')
  await writeFile(file, example.replace(`'outledger'`, `'${root}src/index.ts'`))
  const env = { ...process.env, DATABASE_URL: db.url, CLINIC_URL: peer.url, CLINIC_SECRET: testSecretValue }
  const child = spawn(process.execPath, ['--import', 'tsx', file], {
    env,
    cwd: root,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  t.after(() => child.kill('SIGKILL'))
  const [line] = await once(child.stdout.setEncoding('utf8'), 'data')
  assert.equal(line, 'capture-1842 delivered\n')
  assert.deepEqual(
    peer.received.map(({ key, number, body }) => [key, number, body.toString()]),
    [['capture-1842', 1, '{"payment":1842,"cents":9900}']],
  )
  child.kill('SIGTERM')
  await once(child.stdout, 'close')

  const statements = [...readme.matchAll(/```sql\n([\s\S]+?)```/g)].map((block) => block[1] as string)
  assert.equal(statements.length, 2)
  const session = await db.sql.reserve()
  for (const statement of statements) await session.unsafe(statement)
  session.release()
  assert.deepEqual(await db.query('select key, state from outbox.deliveries order by key'), [
    { key: 'capture-1842', state: 'delivered' },
    { key: 'capture-1843', state: 'waiting' },
  ])
})

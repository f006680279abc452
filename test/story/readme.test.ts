// What a new user does with nothing but README.md: the example, and the first event of one's own, as they stand there.
import 'tsx'
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { after, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { freePort } from '../../scripts/embedded-postgres.ts'
import { testDatabase } from '../support/database.ts'
import { blocksOf, sectionOf } from '../support/manual.ts'
import { startPeer } from '../support/peer.ts'
import { startWorker } from '../support/process.ts'
import { caughtCli } from '../support/screen.ts'
import { testSecretValue } from '../support/secret.ts'
import { ROOT, snippetFolder, wayOf, writeBlock } from '../support/snippets.ts'
import { until } from '../support/until.ts'

const folder = snippetFolder('story')
const [example, ...programs] = blocksOf('ts').filter((block) => wayOf(block) === 'story')

function start(file: string, env: Record<string, string>): ChildProcess & { readonly stdout: NodeJS.ReadableStream } {
  const child = spawn(process.execPath, ['--import', 'tsx', file], {
    env: { ...process.env, CLINIC_SECRET: testSecretValue, ...env },
    cwd: ROOT,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  after(() => child.kill('SIGKILL'))
  child.stdout.setEncoding('utf8')
  return child
}

test('the example of README.md delivers capture-1842', async () => {
  assert.ok(example && example.text.trim().split('\n').length <= 22, 'the example is about twenty lines')
  const [db, peer] = await Promise.all([testDatabase(), startPeer()])
  await db.query('create table payment (id int primary key, cents int)')
  const child = start(writeBlock(folder, example, '.mts'), { DATABASE_URL: db.url, CLINIC_URL: peer.url })
  const [line] = await once(child.stdout, 'data')
  assert.equal(line, 'capture-1842 delivered\n')
  assert.deepEqual(
    peer.received.map(({ key, number, body }) => [key, number, body.toString()]),
    [['capture-1842', 1, '{"payment":1842,"cents":9900}']],
  )
  child.kill('SIGTERM')
  await once(child.stdout, 'close')
  assert.deepEqual(await db.query('select key, state from outbox.deliveries'), [
    { key: 'capture-1842', state: 'delivered' },
  ])
})

test('the first event of a new user comes to the receiver of a new user', async () => {
  const [db, port] = await Promise.all([testDatabase({ template: null }), freePort()])
  process.env.CLINIC_SECRET = testSecretValue
  process.env.DATABASE_URL = db.url
  const files = new Map(programs.map((block) => [block.file, writeBlock(folder, block)]))
  const told: string[] = []
  const answers = new Map<string, string>()
  const outledger = async (line: string) => {
    const args = line.replace('127.0.0.1:4000', `127.0.0.1:${port}`).split(' ')
    const { code, stdout, stderr } = await caughtCli(db.url, args)
    assert.deepEqual([code, stderr], [0, ''], line)
    answers.set(args[0] as string, stdout)
  }
  const steps: readonly (readonly [pattern: RegExp, step: (rest: string) => unknown])[] = [
    // test/package.test.ts installs the package; the environment stands above.
    [/^(?:npm (?:init|install)|export) (.+)$/, () => {}],
    [
      /^node (\S+) &$/,
      (file) => {
        const child = start(files.get(file) as string, { PORT: String(port) })
        child.stdout.on('data', (text) => told.push(text))
        return until('it listens', () => told.length > 0)
      },
    ],
    [/^node (\S+)$/, (file) => import(pathToFileURL(files.get(file) as string).href)],
    [/^npx outledger (work)$/, () => startWorker(db)],
    [/^npx outledger (.+)$/, outledger],
  ]
  const commands = [...sectionOf('## Your first event').matchAll(/```sh\n([\s\S]+?)```/g)].flatMap(([, text = '']) =>
    text.trim().split('\n'),
  )
  assert.ok(commands.length > 8)
  for (const command of commands) {
    const [pattern, step] = steps.find(([pattern]) => pattern.test(command)) ?? []
    assert.ok(pattern && step, command)
    await step(pattern.exec(command)?.[1] ?? '')
    if (command.endsWith('work')) {
      await until('the receiver has it', () => told.some((line) => line.includes('hello-1')))
      // Who types the next command has given the answer time to be written.
      await until('its answer is on record', async () => (await db.query('select from outbox.receipt')).length > 0)
    } else if (command.startsWith('npx outledger show'))
      answers.set(`show ${answers.has('show') ? 'after' : 'before'}`, answers.get('show') ?? '')
  }
  const [listening, ping, ...taken] = told
  assert.equal(listening, `listening on ${port}\n`)
  assert.match(ping ?? '', /^taken ping-\S+ \{"type":"outledger\.ping"/)
  assert.deepEqual(taken, ['taken hello-1 {"hello":"clinic"}\n'])
  assert.match(answers.get('show') ?? '', /^hello-1 · delivered/)
  assert.match(answers.get('status') ?? '', /clinic/)
})

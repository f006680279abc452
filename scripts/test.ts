// Runs the tests against one server: DATABASE_URL's, or an embedded one that is started and ended here.
// `tsx scripts/test.ts lanes story` runs only files whose path contains one of the words.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import postgres from 'postgres'
import { migrate } from '../src/migrate.ts'
import { startPostgres } from './embedded-postgres.ts'

const words = process.argv.slice(2)
const files = readdirSync('test', { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.test.ts') && !file.includes('node_modules'))
  .map((file) => `test/${file}`)
  .filter((file) => words.length === 0 || words.some((word) => file.includes(word)))
  .sort()
if (files.length === 0) {
  console.error(`no test file matches ${words.join(' ') || 'test/**/*.test.ts'}`)
  process.exit(1)
}

const embedded = process.env.DATABASE_URL ? null : await startPostgres({ fsync: 'off', full_page_writes: 'off' })
const server = embedded?.url ?? (process.env.DATABASE_URL as string)
const template = `outledger_template_${process.pid}`
const admin = postgres(server, { max: 1, onnotice: () => {} })
try {
  await admin.unsafe(`create database ${template} template template0 encoding 'UTF8'`)
  await migrate(Object.assign(new URL(server), { pathname: `/${template}` }).href)
  const { DATABASE_URL: _, ...env } = process.env
  const args = ['--import', 'tsx', '--test', '--test-reporter=spec', '--test-concurrency=3', '--test-timeout=120000']
  const child = spawn(process.execPath, [...args, ...files], {
    stdio: 'inherit',
    env: { ...env, OUTLEDGER_TEST_SERVER: server, OUTLEDGER_TEST_TEMPLATE: template },
  })
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => child.kill(signal))
  const [code] = await once(child, 'exit')
  process.exitCode = code ?? 1
} finally {
  await admin.unsafe(`drop database if exists ${template} with (force)`)
  await admin.end({ timeout: 1 })
  await embedded?.stop()
}

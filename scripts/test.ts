// Builds the tests and runs them against one server: DATABASE_URL's, or an embedded one that is started and ended here.
// `tsx scripts/test.ts lanes story` runs only files whose path contains one of the words; `.long.` those that take minutes.
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import postgres from 'postgres'
import { migrate } from '../src/migrate.ts'
import { newAuthority } from '../test/support/certificates.ts'
import { startPostgres } from './embedded-postgres.ts'

/** Begun first, so that nothing long is left alone at the end. */
const LONG = ['test/story/demo', 'test/package', 'test/sql/large-plans', 'test/story/', 'test/roles', 'test/rolling']
const rank = (file: string): number => [...LONG, ''].findIndex((start) => file.startsWith(start))

const words = process.argv.slice(2)
const files = readdirSync('test', { recursive: true, encoding: 'utf8' })
  .filter(
    (file) =>
      (file.endsWith('.test.ts') || (file.endsWith('.long.ts') && words.includes('.long.'))) &&
      !file.includes('node_modules'),
  )
  .map((file) => `test/${file}`)
  .filter((file) => words.length === 0 || words.some((word) => file.includes(word)))
  .sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1))
if (files.length === 0) {
  console.error(`no test file matches ${words.join(' ') || 'test/**/*.test.ts'}`)
  process.exit(1)
}

/** The tests and what they test as JavaScript: transpiled once and not by each of their processes. Types are checked elsewhere. */
function build(folder: string): void {
  const tsc = [resolve('node_modules/typescript/bin/tsc'), '--noCheck', '--noEmit', 'false', '--sourceMap']
  execFileSync(process.execPath, [...tsc, '--rootDir', '.', '--outDir', folder], { stdio: 'inherit' })
  for (const name of ['drizzle', 'node_modules', 'package.json']) symlinkSync(realpathSync(name), join(folder, name))
}

/** What is tested of the core needs no process of its own for each file: to start one takes longer than its tests. */
function together(folder: string): string[] {
  const pure = files.filter((file) => file.startsWith('test/core/'))
  const all = 'test/core/all.test.ts'
  writeFileSync(builtFrom(folder, all), pure.map((file) => `import '${builtFrom(folder, file)}'\n`).join(''))
  return [...files.filter((file) => !pure.includes(file)), ...(pure.length > 0 ? [all] : [])]
}

const builtFrom = (folder: string, file: string): string => join(folder, file.replace(/ts$/, 'js'))

/** Those of an embedded server go with it. */
async function dropDatabases(): Promise<void> {
  const found = await admin`select datname from pg_database where starts_with(datname, ${template})`
  for (const { datname } of found) await admin.unsafe(`drop database ${datname} with (force)`)
}

/** Nothing has to outlive a crash, nor to be looked after while it lasts: each test file makes databases of its own. */
const SETTINGS = {
  ...{ fsync: 'off', full_page_writes: 'off', autovacuum: 'off' },
  ...{ wal_level: 'minimal', max_wal_senders: '0', max_wal_size: '16GB', checkpoint_timeout: '1h' },
}

const folder = realpathSync(mkdtempSync(join(tmpdir(), 'outledger-tests-')))
const embedded = process.env.DATABASE_URL ? null : await startPostgres(SETTINGS)
const server = embedded?.url ?? (process.env.DATABASE_URL as string)
const template = `outledger_template_${process.pid}`
const admin = postgres(server, { max: 1, onnotice: () => {} })
try {
  build(folder)
  await admin.unsafe(`create database ${template} template template0 encoding 'UTF8'`)
  await migrate(Object.assign(new URL(server), { pathname: `/${template}` }).href)
  const { DATABASE_URL: _, ...env } = process.env
  // Peers with a certificate of this authority are trusted by every process of the run, as a private one is in production.
  const authority = newAuthority()
  writeFileSync(join(folder, 'authority.pem'), authority.cert)
  const args = [
    '--enable-source-maps',
    '--test',
    '--test-reporter=spec',
    '--test-concurrency=3',
    '--test-timeout=120000',
  ]
  const built = together(folder).map((file) => builtFrom(folder, file))
  const child = spawn(process.execPath, [...args, ...built], {
    stdio: 'inherit',
    env: {
      ...env,
      OUTLEDGER_TEST_SERVER: server,
      OUTLEDGER_TEST_TEMPLATE: template,
      OUTLEDGER_TEST_AUTHORITY_KEY: authority.key,
      NODE_EXTRA_CA_CERTS: join(folder, 'authority.pem'),
    },
  })
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => child.kill(signal))
  const [code] = await once(child, 'exit')
  process.exitCode = code ?? 1
} finally {
  rmSync(folder, { recursive: true, force: true })
  if (embedded === null) await dropDatabases()
  await admin.end({ timeout: 1 })
  await embedded?.stop()
}

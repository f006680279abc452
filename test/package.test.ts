// What a user gets from npm: packed, installed into an empty project, compiled against and run.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { publint } from 'publint'
import { formatMessage } from 'publint/utils'
import { migrationSql } from '../src/migrate.ts'
import { testDatabase } from './support/database.ts'
import { bin, environment, installedPackage, output } from './support/package.ts'
import { startPeer } from './support/peer.ts'
import { testSecretValue } from './support/secret.ts'
import { filesBelow, textOf } from './support/source.ts'

const [{ tarball, files, manifest, app }, db, peer] = await Promise.all([
  installedPackage(),
  testDatabase({ template: null }),
  startPeer(),
])

/** Names to import, from the exports: `outledger`, `outledger/…`. */
const entries = Object.entries(manifest.exports)
  .filter(([, target]) => typeof target === 'object')
  .map(([path]) => path.replace(/^\./, manifest.name))

const example = /```ts\n([\s\S]+?)```/.exec(textOf('README.md'))?.[1] ?? ''
await writeFile(join(app, 'package.json'), JSON.stringify({ name: 'app', private: true, type: 'module' }))
await writeFile(join(app, 'example.ts'), example)
await writeFile(
  join(app, 'entries.ts'),
  entries
    .map((entry, i) => `import * as entry${i} from '${entry}'\nconsole.log(Object.keys(entry${i}).join())\n`)
    .join(''),
)
const compile = (module: string, moduleResolution: string, ...more: string[]) => {
  const options = ['--strict', '--exactOptionalPropertyTypes', '--target', 'es2023', '--types', 'node']
  const args = ['example.ts', 'entries.ts', ...options, '--module', module, '--moduleResolution', moduleResolution]
  return output(bin('tsc'), ['--ignoreConfig', ...args, ...more], { cwd: app })
}
const outledger = (...args: string[]) => output(join(app, 'node_modules/.bin/outledger'), args, { cwd: app })

// All side by side; each test waits for its own.
const nodenext = compile('nodenext', 'nodenext', '--outDir', 'out')
// What a bundler would resolve in another way, attw looks at.
const bundler = compile('esnext', 'bundler', '--noEmit', '--skipLibCheck')
const attw = output(bin('attw'), [tarball, '--profile', 'esm-only', '--format', 'ascii', '--no-color'], { cwd: app })
const help = output('npx', ['outledger', '--help'], { cwd: app })
const printed = outledger('migrate', '--print')

test('the package holds what is run, its types and its migrations, and nothing else', async () => {
  const built = /^dist\/.+\.(?:js|d\.ts)$|^drizzle\/\d{4}_\w+\.sql$|^drizzle\/meta\/_journal\.json$/
  const papers = ['CHANGELOG.md', 'LICENSE', 'README.md', 'package.json']
  assert.deepEqual(files.filter((path) => !built.test(path)).sort(), papers)
  const sources = filesBelow('src').map((path) => path.replace(/^src\/(.+)\.ts$/, 'dist/$1.js'))
  assert.deepEqual(files.filter((path) => path.endsWith('.js')).sort(), sources.sort(), 'no leftovers of older builds')
  for (const path of files.filter((path) => path.endsWith('.js')))
    assert.doesNotMatch(await readFile(join(app, 'node_modules/outledger', path), 'utf8'), /sourceMappingURL/, path)
})

test('publint and attw find nothing wrong', async () => {
  const found = await publint({ pkgDir: join(app, 'node_modules/outledger'), strict: true, pack: false })
  assert.deepEqual(
    found.messages.map((message) => formatMessage(message, found.pkg)),
    [],
  )
  const { code, stdout, stderr } = await attw
  assert.equal(code, 0, stdout + stderr)
  for (const entry of entries) assert.ok(stdout.includes(entry), `${entry} was looked at`)
})

for (const [how, compiled] of [
  ['nodenext, without skipLibCheck', nodenext],
  ['bundler', bundler],
] as const)
  test(`its types are complete under ${how}`, async () => {
    const { stdout } = await compiled
    const complaints = stdout.split('\n').filter((line) => /error TS/.test(line))
    // Those of drizzle's own declarations are not ours to mend.
    assert.deepEqual(
      complaints.filter((line) => !/node_modules\/drizzle-orm\//.test(line)),
      [],
    )
  })

test('npx outledger --help works, and the migrations are in the package', async () => {
  const { code, stdout, stderr } = await help
  assert.deepEqual([code, stderr], [0, ''])
  assert.match(stdout, /^outledger \d+\.\d+\.\d+/)
  assert.equal((await printed).stdout, `${await migrationSql()}\n`)
})

test('every entry can be imported, and the example of the README delivers', async (t) => {
  await nodenext
  const imported = await output(process.execPath, ['out/entries.js'], { cwd: app })
  assert.equal(imported.stderr, '')
  assert.equal(imported.stdout.trim().split('\n').length, entries.length)
  assert.match(imported.stdout, /createPoller/)

  await db.query('create table payment (id int primary key, cents int)')
  const env = { ...environment, DATABASE_URL: db.url, CLINIC_URL: peer.url, CLINIC_SECRET: testSecretValue }
  const child = spawn(process.execPath, ['out/example.js'], { env, cwd: app, stdio: ['ignore', 'pipe', 'inherit'] })
  t.after(() => child.kill('SIGKILL'))
  const [line] = await once(child.stdout.setEncoding('utf8'), 'data')
  assert.equal(line, 'capture-1842 delivered\n')
  assert.deepEqual(
    peer.received.map(({ key, number }) => [key, number]),
    [['capture-1842', 1]],
  )
  child.kill('SIGTERM')
  assert.deepEqual(await once(child, 'exit'), [0, null])
})

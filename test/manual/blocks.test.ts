// Every block of the manual is compiled, and run against a real database and a real receiver.
import 'tsx'
import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { parse } from '../../src/cli/usage.ts'
import { VERBS, type Verb } from '../../src/cli/verbs.ts'
import { deliverOnce, putClinic } from '../support/clinic.ts'
import { testDatabase } from '../support/database.ts'
import { BLOCKS, blocksOf } from '../support/manual.ts'
import { bin, output } from '../support/package.ts'
import { startPeer } from '../support/peer.ts'
import { ROOT, snippetFolder, wayOf, writeBlock } from '../support/snippets.ts'
import { textOf } from '../support/source.ts'

const folder = snippetFolder('blocks')
// Prisma itself is tested in test/clients; here stands what its generated client looks like to the block.
const standIn = `export * from '${ROOT}test/manual/prisma-client.ts'\n`
mkdirSync(join(folder, 'client'))
writeFileSync(join(folder, 'client/client.ts'), standIn)
mkdirSync(join(folder, 'node_modules/@prisma/adapter-pg'), { recursive: true })
writeFileSync(join(folder, 'node_modules/@prisma/adapter-pg/index.ts'), standIn)
writeFileSync(
  join(folder, 'node_modules/@prisma/adapter-pg/package.json'),
  JSON.stringify({ name: '@prisma/adapter-pg', type: 'module', exports: './index.ts' }),
)
const blocks = blocksOf('ts').map((block) => ({ ...block, way: wayOf(block), path: writeBlock(folder, block, '.mts') }))
writeFileSync(join(folder, 'package.json'), '{"type":"module"}')
writeFileSync(
  join(folder, 'tsconfig.json'),
  JSON.stringify({
    extends: join(ROOT, 'tsconfig.json'),
    compilerOptions: {
      rewriteRelativeImportExtensions: false,
      types: [join(ROOT, 'node_modules/@types/node')],
      noUnusedLocals: true,
    },
    include: [],
    files: blocks.map(({ path }) => path),
  }),
)
const [compiled, db, peer] = await Promise.all([
  output(bin('tsc'), ['-p', folder], { cwd: folder }),
  testDatabase(),
  startPeer(),
])
await db.query('create table payment (id int primary key, cents int)')
await putClinic(db, peer.url)
process.env.DATABASE_URL = db.url

test('every block is of a language that is tested', () => {
  const languages = new Set(BLOCKS.map(({ language }) => language))
  assert.deepEqual([...languages].toSorted(), ['', 'sh', 'sql', 'ts'])
  // The diagram.
  assert.equal(blocksOf('').length, 1)
})

test('every block of TypeScript compiles', () => {
  assert.ok(blocks.length >= 12)
  assert.equal(compiled.stdout, '')
  assert.equal(compiled.code, 0)
})

/** What the blocks print, so that it is not printed in between. */
const printed: string[] = []
const quietly = async (work: () => Promise<unknown>) => {
  const { log } = console
  console.log = (...values: unknown[]) => printed.push(values.map((value) => JSON.stringify(value)).join(' '))
  await work().finally(() => {
    console.log = log
  })
}

test('every block that is a program does what it says', async () => {
  // A payment whose event was forgotten.
  await db.query('insert into payment values (10, 1000)')
  for (const { way, path } of blocks)
    if (way === 'here' || way === 'prisma') await quietly(() => import(pathToFileURL(path).href))
  assert.deepEqual(await db.query('select id, cents from payment order by id'), [
    ...[1, 2, 3, 4, 5].map((id) => ({ id, cents: id * 100 })),
    { id: 10, cents: 1000 },
  ])
  assert.ok(printed.includes('{"checked":6,"missing":1,"enqueued":1,"mismatched":0}'), printed.join('\n'))
  // Deliveries of one ordering key go out one after the other.
  while ((await deliverOnce(db)).claimed > 0);
  const keys = peer.received.map(({ key }) => key)
  assert.equal(new Set(keys).size, keys.length)
  assert.deepEqual(
    keys.filter((key) => key.startsWith('capture-')).toSorted(),
    [1, 10, 2, 3, 4, 5, 6, 7, 8, 9].map((n) => `capture-${n}`),
  )
  assert.deepEqual(
    keys.filter((key) => !key.startsWith('capture-')),
    ['refund-1'],
  )
  assert.deepEqual(await db.query(`select key from outbox.deliveries where state <> 'delivered'`), [])
})

test('the tests in the manual pass', async () => {
  const own = await testDatabase()
  const paths = blocks.filter(({ way }) => way === 'tests').map(({ path }) => path)
  assert.equal(paths.length, 1)
  const { NODE_TEST_CONTEXT: _, ...env } = process.env
  const { code, stdout } = await output(
    process.execPath,
    ['--import', 'tsx', '--test', '--test-reporter=tap', ...paths],
    {
      cwd: ROOT,
      env: { ...env, DATABASE_URL: own.url },
    },
  )
  assert.equal(code, 0, stdout)
  assert.match(stdout, /^# pass 2$/m)
})

test('every block of SQL runs', async () => {
  const session = await db.sql.reserve()
  try {
    for (const { text } of blocksOf('sql')) await session.unsafe(text)
  } finally {
    session.release()
  }
  assert.deepEqual(await db.query(`select state, type from outbox.deliveries where key = 'capture-1843'`), [
    { state: 'waiting', type: 'payment.captured' },
  ])
})

/** As a shell splits them. */
const wordsOf = (line: string): string[] =>
  [...line.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? '')

const manifest = JSON.parse(textOf('package.json'))

/** What may stand in a shell block; an `outledger` command is parsed as the command line does it. */
const COMMANDS: readonly (readonly [pattern: RegExp, check: (found: RegExpExecArray) => unknown])[] = [
  [/^npm (start|test)$/, ([, script = '']) => assert.ok(manifest.scripts[script])],
  [/^npm run (\S+)( --)?/, ([, script = '']) => assert.ok(manifest.scripts[script])],
  [/^npm (?:ci|init -y)$/, () => {}],
  [
    /^npm install (.+)$/,
    ([, names = '']) => {
      const known = [manifest.name, ...Object.keys({ ...manifest.dependencies, ...manifest.peerDependencies })]
      for (const name of names.split(' ')) assert.ok(known.includes(name), name)
    },
  ],
  [/^export [A-Z_]+=\S/, () => {}],
  [
    /^node (\S+\.mjs)(?: &)?$/,
    ([, file = '']) =>
      assert.ok(
        blocks.some((block) => block.file === file),
        file,
      ),
  ],
  [
    /^(?:npx )?outledger (.+?)(?: > \S+)?$/,
    ([, line = '']) => {
      const words = wordsOf(line)
      const verb = (VERBS as readonly Verb[])
        .filter(({ name }) => `${line} `.startsWith(`${name} `))
        .toSorted((a, b) => b.name.length - a.name.length)[0]
      assert.ok(verb, 'no such verb')
      parse(words.slice(verb.name.split(' ').length), verb)
    },
  ],
]

test('every command in a shell block is one', () => {
  const commands = blocksOf('sh').flatMap(({ text, line }) =>
    text
      .trimEnd()
      .split('\n')
      .flatMap((one, i) =>
        one
          .replace(/ +# .*$/, '')
          .split(' && ')
          .map((command) => ({ command, at: `README.md:${line + i}: ${command}` })),
      ),
  )
  assert.ok(commands.length > 20)
  for (const { command, at } of commands) {
    const [pattern, check] = COMMANDS.find(([pattern]) => pattern.test(command)) ?? []
    assert.ok(pattern && check, `${at}: unknown command`)
    assert.doesNotThrow(() => check(pattern.exec(command) as RegExpExecArray), at)
  }
})

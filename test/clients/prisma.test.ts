import 'tsx'
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import type { Handle } from '../../src/index.ts'
import { testDatabase } from '../support/database.ts'
import { addEndpoint } from '../support/ledger.ts'
import { blocksOf } from '../support/manual.ts'
import { sourced, wayOf } from '../support/snippets.ts'
import { messages } from './messages.ts'
import { type Isolation, prismaState, type Subject } from './subject.ts'
import { transactions } from './transactions.ts'

const PROJECT = join(process.cwd(), 'test/prisma/')
const MODULES = join(PROJECT, 'node_modules')
const INSTALL = 'npm ci --prefix test/prisma --ignore-scripts'

const SCHEMA = `
generator client {
  provider = "prisma-client"
  output   = "./client"
}

datasource db {
  provider = "postgresql"
}

model payment {
  id    Int @id
  cents Int
}
`

/** What an app writes, with Prisma's own types. */
const APP = `
import type { PrismaClient } from './client/client.ts'
import { outbox } from '../../../../src/index.ts'

export async function capture(prisma: PrismaClient) {
  await prisma.$transaction(async (tx) => {
    await tx.payment.create({ data: { id: 1, cents: 1842 } })
    await outbox.enqueue(tx, { key: 'capture-1', endpoint: 'clinic', type: 'payment.captured', payload: { id: 1 } })
    await outbox.enqueueMany(tx, [])
  })
  await outbox.enqueueStandalone(prisma, { key: 'night-1', endpoint: 'clinic', type: 'night', payload: {} })
  const extended = prisma.$extends({ client: { $log() {} } })
  await extended.$transaction((tx) => outbox.enqueueMany(tx, []))
}
`

interface Prisma {
  readonly $connect: unknown
  $queryRawUnsafe(text: string, ...values: unknown[]): Promise<unknown>
  $transaction<T>(work: (tx: Handle) => Promise<T>, options?: object): Promise<T>
  $extends(extension: object): Prisma
  $disconnect(): Promise<void>
}

if (!existsSync(join(MODULES, '.bin/prisma'))) {
  test('the real Prisma', { skip: `Prisma is not installed in test/prisma; to run its tests: ${INSTALL}` }, () => {})
} else {
  // Below node_modules: the generated client finds its runtime there, and no other tool looks.
  const folder = mkdtempSync(join(MODULES, '.outledger-'))
  const closing: Prisma[] = []
  after(async () => {
    await Promise.all(closing.map((prisma) => prisma.$disconnect()))
    rmSync(folder, { recursive: true, force: true })
  })
  writeFileSync(join(folder, 'schema.prisma'), SCHEMA)
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
  // Its engine for migrations would be fetched from the network; to generate a client nobody needs it.
  execFileSync(process.execPath, [join(MODULES, 'prisma/build/index.js'), 'generate', '--schema', 'schema.prisma'], {
    cwd: folder,
    env: { ...process.env, PRISMA_SCHEMA_ENGINE_BINARY: '/bin/true', CHECKPOINT_DISABLE: '1', NO_UPDATE_NOTIFIER: '1' },
    stdio: 'pipe',
  })
  const db = await testDatabase()
  await addEndpoint(db)
  await addEndpoint(db, { name: 'ledger' })
  await db.query('create table note (n text)')
  await db.query('create table payment (id int primary key, cents int not null)')

  const { PrismaPg } = createRequire(join(PROJECT, 'package.json'))('@prisma/adapter-pg')
  const { PrismaClient } = await import(pathToFileURL(join(folder, 'client/client.ts')).href)
  const root: Prisma = new PrismaClient({ adapter: new PrismaPg({ connectionString: db.url, max: 3 }) })
  closing.push(root)
  const ISOLATION = { 'read committed': 'ReadCommitted', 'repeatable read': 'RepeatableRead' }

  for (const [name, prisma] of Object.entries({
    Prisma: root,
    'an extended Prisma': root.$extends({
      client: { $log() {} },
      query: { $allOperations: ({ args, query }: { args: object; query: (args: object) => unknown }) => query(args) },
    }),
  })) {
    const subject: Subject = {
      name,
      roots: { prisma: prisma as never },
      begin: (work, isolation: Isolation = 'read committed') =>
        prisma.$transaction(work, { isolationLevel: ISOLATION[isolation] }),
      // Nested transactions are savepoints, since Prisma 7.
      savepoint: (tx, work) => (tx as unknown as Prisma).$transaction(work),
      stateOf: prismaState,
      close: () => prisma.$disconnect(),
    }
    transactions(db, subject)
    messages(db, subject)
  }

  const blocks = blocksOf('ts').filter((block) => wayOf(block) === 'prisma')
  writeFileSync(join(folder, 'manual.mts'), sourced(blocks.map(({ text }) => text).join('\n')))

  test('the block of README.md runs', async () => {
    assert.equal(blocks.length, 1)
    process.env.DATABASE_URL = db.url
    await import(pathToFileURL(join(folder, 'manual.mts')).href)
    assert.deepEqual(await db.query('select id, cents from payment where id = 5'), [{ id: 5, cents: 500 }])
    assert.deepEqual(await db.query(`select key, endpoint from outbox.deliveries where key = 'capture-5'`), [
      { key: 'capture-5', endpoint: 'clinic' },
    ])
  })

  test('Prisma’s own types fit', () => {
    writeFileSync(join(folder, 'app.ts'), APP)
    writeFileSync(
      join(folder, 'tsconfig.json'),
      JSON.stringify({
        extends: join(PROJECT, '../../tsconfig.json'),
        compilerOptions: { rewriteRelativeImportExtensions: false },
        include: ['app.ts', 'manual.mts'],
      }),
    )
    try {
      execFileSync(join(PROJECT, '../../node_modules/.bin/tsc'), { cwd: folder, encoding: 'utf8', stdio: 'pipe' })
    } catch (error) {
      assert.fail((error as { stdout: string }).stdout)
    }
  })
}

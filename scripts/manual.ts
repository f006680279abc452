// Writes the tables of README.md that come from the source, between their markers: npm run manual
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import postgres from 'postgres'
import { migrate } from '../src/migrate.ts'
import { startPostgres } from './embedded-postgres.ts'
import { readCatalog } from './manual/catalog.ts'
import { manual } from './manual/sections.ts'

const path = fileURLToPath(new URL('../README.md', import.meta.url))
const server = await startPostgres({ fsync: 'off' })
const client = postgres(server.url, { max: 1, onnotice: () => {} })
try {
  await migrate(server.url)
  const before = readFileSync(path, 'utf8')
  const after = manual(before, await readCatalog((text) => client.unsafe(text) as never))
  writeFileSync(path, after)
  console.log(before === after ? 'README.md is up to date' : 'README.md was written')
} finally {
  await client.end({ timeout: 1 })
  await server.stop()
}

// npm run ledger-equals-wire: a long random run after which the peer's list of requests and the ledger are laid side by side.
import { randomInt } from 'node:crypto'
import { parseArgs } from 'node:util'
import postgres from 'postgres'
import { migrate } from '../../src/index.ts'
import { startPostgres } from '../embedded-postgres.ts'
import { differences } from './compare.ts'
import { FAULTS } from './faults.ts'
import { run } from './run.ts'

const { values } = parseArgs({
  options: { seed: { type: 'string' }, attempts: { type: 'string', default: '20000' } },
})
const seed = Number(values.seed ?? randomInt(2 ** 31))
const attempts = Number(values.attempts)
if (!(Number.isSafeInteger(seed) && Number.isInteger(attempts) && attempts >= 500)) {
  console.error('ledger-equals-wire: --seed is a whole number, --attempts one from 500')
  process.exit(2)
}
console.log(
  `seed ${seed}, at least ${attempts} attempts; again: npm run ledger-equals-wire -- --seed ${seed} --attempts ${attempts}`,
)

/** Shown of the differences. */
const FIRST = 20

/** Far beyond what it takes: what is still open then will never end. */
const limitMs = 60_000 + 15 * attempts

const over = new AbortController()
const limit = setTimeout(() => over.abort(new Error(`not over within ${limitMs} ms`)), limitMs)
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.on(signal, () => over.abort(new Error(`ended by ${signal}`)))

const embedded = process.env.DATABASE_URL ? null : await startPostgres({ fsync: 'off', full_page_writes: 'off' })
const server = embedded?.url ?? (process.env.DATABASE_URL as string)
const name = `outledger_wire_${process.pid}`
const databaseUrl = Object.assign(new URL(server), { pathname: `/${name}` }).href
const admin = postgres(server, { max: 1, onnotice: () => {} })
const sql = postgres(databaseUrl, { max: 4, onnotice: () => {} })
try {
  await admin.unsafe(`create database ${name} template template0 encoding 'UTF8'`)
  await migrate(databaseUrl)
  const began = performance.now()
  const lists = await run({ sql, databaseUrl, seed, attempts, signal: over.signal, say: console.log })
  const { rows, seen, unread, receipts, met } = lists
  const count = (sent: boolean | null) => rows.filter(({ requestSent }) => requestSent === sent).length
  const names = new Set(seen.map(({ key, number }) => `${key} #${number}`))
  const unseen = rows.filter(({ requestSent, key, number }) => requestSent && !names.has(`${key} #${number}`)).length
  console.log(
    `faults met: ${[...met]
      .sort()
      .map(([fault, n]) => `${fault} ${n}`)
      .join(', ')}`,
  )
  console.log(
    `${receipts.length} deliveries, ${rows.length} attempts in ${Math.round((performance.now() - began) / 1000)} s: ${count(true)} sent, ${count(false)} not sent, ${count(null)} lost with their poller`,
  )
  console.log(`${seen.length} requests seen; ${unseen} sent and dropped unread by ${unread.length} resets of the peer`)
  // A run in which nothing happened proves nothing.
  const idle = [
    ...(rows.length < attempts ? [`only ${rows.length} attempts`] : []),
    ...(count(false) === 0 ? ['every attempt was sent'] : []),
    // A kill may come at a moment when nothing is in flight.
    ...(attempts >= 10_000 && count(null) === 0 ? ['no attempt was lost with its poller'] : []),
    ...(attempts < 10_000
      ? []
      : FAULTS.filter((fault) => !met.has(fault)).map((fault) => `fault ${fault} was never met`)),
  ]
  const wrong = [...differences(lists), ...idle]
  for (const line of wrong.slice(0, FIRST)) console.log(line)
  console.log(wrong.length === 0 ? 'ledger = wire' : `${wrong.length} differences, seed ${seed}`)
  process.exitCode = wrong.length === 0 ? 0 : 1
} catch (error) {
  console.error(`ledger-equals-wire: ${(error as Error).message}, seed ${seed}`)
  process.exitCode = 1
} finally {
  clearTimeout(limit)
  await sql.end({ timeout: 1 })
  await admin.unsafe(`drop database if exists ${name} with (force)`)
  await admin.end({ timeout: 1 })
  await embedded?.stop()
}
process.exit()

// Each right that a role is given is taken away once: what the role is for must then fail, or the right is one too many.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { posix } from 'node:path'
import { test } from 'node:test'
import { requireSchema } from '../src/schema-version.ts'
import { claim, claimProbe, claimSuspect } from '../src/sql/claim.ts'
import { discover } from '../src/sql/discover.ts'
import { endpointByName, endpointsById, listEndpoints } from '../src/sql/endpoint.ts'
import { putEndpoint } from '../src/sql/endpoint-put.ts'
import { enqueue } from '../src/sql/enqueue.ts'
import { enqueueMany } from '../src/sql/enqueue-many.ts'
import type { Executor } from '../src/sql/executor.ts'
import { beat, forgetDead, leave } from '../src/sql/heartbeat.ts'
import { late } from '../src/sql/late.ts'
import { mend } from '../src/sql/mend.ts'
import { pin } from '../src/sql/pin.ts'
import { promote } from '../src/sql/promote.ts'
import { purge } from '../src/sql/purge.ts'
import { release } from '../src/sql/release.ts'
import { report } from '../src/sql/report.ts'
import { settle } from '../src/sql/settle.ts'
import { suspects } from '../src/sql/suspects.ts'
import { testDatabase } from './support/database.ts'
import { addEndpoint, endpointSettings, message } from './support/ledger.ts'
import { createRoles, type RoleName, relations, rightsOf } from './support/roles.ts'
import { begin } from './support/session.ts'
import { fileAt } from './support/source.ts'

const db = await testDatabase()
await addEndpoint(db)
const roles = await createRoles(db)

type Step = (db: Executor) => Promise<unknown>

// The server checks all rights of a statement before it looks for rows: empty input will do.
const LEASE = { leaseMs: 1_000, timeoutMs: 1_000, token: randomUUID(), poller: 'p' }
const POLLER: Readonly<Record<string, Step>> = {
  claim: (db) => claim(db, { lanes: [], total: 1, slackMs: 0, ...LEASE }),
  claimSuspect: (db) => claimSuspect(db, { ids: [], ...LEASE }),
  claimProbe: (db) => claimProbe(db, { endpointId: 1, lanes: [1024], ...LEASE }),
  report: (db) => report(db, [], 'p'),
  suspects: (db) => suspects(db, { limit: 1 }),
  endpointsById: (db) => endpointsById(db, [1]),
  discover: (db) => discover(db, { afterEndpointId: 0, afterLane: -1, limit: 1 }),
  beat: (db) => beat(db, { name: 'p', heartbeatMs: 1_000, version: '0', declines: [1] }),
  leave: (db) => leave(db, 'p'),
  forgetDead,
  promote: (db) => promote(db, { endpointId: 0, orderingKey: '', keys: 1 }),
  purge: (db) => purge(db, { limit: 1, tombstoneDays: 1, runId: randomUUID() }),
  late: (db) => late(db, []),
  mend: (db) => mend(db, []),
  pin: (db) => pin(db, []),
  release: (db) => release(db, [], { delayMs: 0 }),
  settle: (db) => settle(db, [], 'p'),
}

const looks = (await relations(db, 'v')).map(
  (view): Step =>
    (db) =>
      db.run(`select * from outbox.${view}`, []),
)

const SCENARIOS: Record<RoleName, readonly Step[]> = {
  enqueuer: [
    (db) => enqueue(db, message('one')),
    (db) => enqueueMany(db, [message('two', { orderingKey: 'o' }), message('three')]),
  ],
  poller: [requireSchema, ...Object.values(POLLER)],
  reader: [requireSchema, ...looks],
  operator: [
    requireSchema,
    ...looks,
    listEndpoints,
    (db) => endpointByName(db, 'clinic'),
    (db) => putEndpoint(db, endpointSettings(), { by: 'a test', version: 1, changes: true }),
    // How many deliveries an endpoint has open, and what was done to it, decide what may be done next.
    (db) => db.run('select count(*) from outbox.queue where endpoint_id = 1', []),
    (db) => db.run(`select verb from outbox.operation where subject = 'clinic' order by id`, []),
  ],
}

/** All that the role is for, in a transaction that leaves nothing; null, or the SQLSTATE of what failed. */
async function failing(role: RoleName): Promise<string | null> {
  const session = await begin({ ...db, url: roles[role].url })
  try {
    for (const step of SCENARIOS[role]) await step(session)
    return null
  } catch (error) {
    const { code, cause } = error as { code: string; cause?: { code: string } }
    return cause?.code ?? code
  } finally {
    await session.rollback()
  }
}

for (const role of Object.keys(SCENARIOS) as RoleName[])
  test(`the ${role} can do what it is for, and not without any one of its rights`, async () => {
    assert.equal(await failing(role), null)
    const rights = await rightsOf(db, roles[role].group)
    assert.ok(rights.includes('USAGE on schema outbox') && rights.length > 1, rights.join(', '))
    const superfluous: string[] = []
    for (const right of rights) {
      await db.query(`revoke ${right} from ${roles[role].group}`)
      if ((await failing(role)) !== '42501') superfluous.push(right)
      await db.query(`grant ${right} to ${roles[role].group}`)
    }
    assert.deepEqual(superfluous, [])
    assert.equal(await failing(role), null)
  })

test('every statement that the poller runs is among those', () => {
  const seen = new Set<string>()
  const walk = (path: string): string[] => {
    if (seen.has(path)) return []
    seen.add(path)
    return fileAt(path).imports.flatMap(({ from, names }) => {
      if (!from.startsWith('src/')) return []
      if (posix.dirname(from) !== 'src/sql') return walk(from)
      const functions = [...names.matchAll(/\b[a-z]\w*/g)].map(([name]) => name).filter((name) => name !== 'type')
      return /\/(?:executor|inspect|migration)\.ts$/.test(from) ? [] : functions
    })
  }
  assert.deepEqual([...new Set(walk('src/poller.ts'))].sort(), Object.keys(POLLER).sort())
})

import assert from 'node:assert/strict'
import { beforeEach, test } from 'node:test'
import { type Report, reportOf, type Sign } from '../../src/core/health.ts'
import { type EndpointReport, report } from '../../src/sql/report.ts'
import { forgive } from '../support/clinic.ts'
import { testDatabase } from '../support/database.ts'
import { addEndpoint } from '../support/ledger.ts'
import { begin } from '../support/session.ts'

const db = await testDatabase()
const [one, two] = [await addEndpoint(db), await addEndpoint(db, { name: 'two', retryDelayMs: 30_000 })]
beforeEach(() => forgive(db))

const LETTERS: Record<string, Sign> = { S: 'success', F: 'failure', R: 'rejection', G: 'gone', _: 'nothing' }
const say = (letters: string, more: Partial<EndpointReport> = {}): EndpointReport => ({
  ...(reportOf([...letters].map((letter) => LETTERS[letter] as Sign)) satisfies Report),
  ...{ endpointId: one.id, version: 1, failingMs: 0, backoffMs: 0, probe: null, reason: null },
  ...more,
})
const tell = async (letters: string, more: Partial<EndpointReport> = {}) => {
  const [told, ...others] = await report(db, [say(letters, more)], 'p-1')
  assert.deepEqual(others, [])
  return told ?? assert.fail()
}
interface Row {
  failures: number
  rejections: number
  failing: number | null
  trip_ms: number | null
  tripped: number | null
  backoff: number | null
  paused_reason: string | null
}
/** Seconds from now, rounded. */
const row = async (id = one.id): Promise<Row> => {
  const seconds = (name: string) => `round(extract(epoch from ${name} - clock_timestamp()))::int`
  const [found] = await db.query<Row & Record<string, unknown>>(
    `select failures, rejections, ${seconds('failing_since')} as failing, trip_ms, ${seconds('tripped_until')} as tripped,
            ${seconds('backoff_until')} as backoff, paused_reason from outbox.endpoint where id = ${id}`,
  )
  return found ?? assert.fail()
}
const QUIET: Row = {
  ...{ failures: 0, rejections: 0, failing: null, trip_ms: null, tripped: null, backoff: null, paused_reason: null },
}
const age = (seconds: number) =>
  db.query(
    `update outbox.endpoint set failing_since = failing_since - interval '${seconds} s', tripped_until = tripped_until - interval '${seconds} s'`,
  )

test('failures add up over reports, from the first one on; a success ends the row', async () => {
  await tell('FF', { failingMs: 3_000 })
  await tell('F', { failingMs: 1_000 })
  assert.deepEqual(await row(), { ...QUIET, failures: 3, failing: -3 })
  await tell('FSF', { failingMs: 1_000 })
  assert.deepEqual(await row(), { ...QUIET, failures: 1, failing: -1 })
  await tell('S')
  assert.deepEqual(await row(), QUIET)
})

test('twenty failures in a row trip the circuit when ten seconds lie between, and not before', async () => {
  assert.equal((await tell('F'.repeat(64))).tripped_ms, null, 'a receiver that restarts')
  await age(9)
  assert.equal((await tell('F')).tripped_ms, null)
  await age(1)
  assert.equal((await tell('F')).tripped_ms, 5_000)
  assert.deepEqual(await row(), { ...QUIET, failures: 66, failing: -10, trip_ms: 5_000, tripped: 5 })
  await forgive(db)
  await tell('F'.repeat(18))
  await age(3_600)
  assert.equal((await tell('F')).tripped_ms, null, 'nineteen, however long')
  assert.equal((await tell('F')).tripped_ms, 5_000)
})

test('each failed probe doubles the pause, up to that of a retry; other failures do not; any success closes', async () => {
  await tell('F'.repeat(20), { endpointId: two.id })
  await age(10)
  await tell('F', { endpointId: two.id })
  for (const ms of [10_000, 20_000, 30_000, 30_000]) {
    await age(60)
    assert.equal((await tell('F', { endpointId: two.id })).tripped_ms, null, 'one that was in flight')
    assert.equal((await tell('F', { endpointId: two.id, probe: 'failed' })).tripped_ms, ms)
    assert.deepEqual((await row(two.id)).tripped, ms / 1_000)
  }
  assert.equal((await tell('_', { endpointId: two.id, probe: 'ended' })).tripped_ms, null)
  assert.equal((await row(two.id)).tripped, 0, 'it answers: the next probe may follow at once')
  assert.equal((await tell('S', { endpointId: two.id })).closed, true)
  assert.deepEqual(await row(two.id), QUIET)
  assert.equal((await tell('S', { endpointId: two.id })).closed, false)
})

test('five rejections in a row pause it, with what and how often on record; deliveries between them end the row', async () => {
  assert.deepEqual(await tell('RRRR', { reason: 'auth_rejected' }).then((r) => [r.rejections, r.paused]), [0, null])
  assert.equal((await tell('SRRRR', { reason: 'auth_rejected' })).paused, null)
  const paused = 'endpoint_rejects: auth_rejected, 5 deliveries in a row'
  assert.deepEqual(await tell('R', { reason: 'auth_rejected' }).then((r) => [r.rejections, r.paused]), [4, paused])
  assert.deepEqual(await row(), { ...QUIET, rejections: 5, paused_reason: paused })
  assert.equal((await tell('RR')).paused, null, 'it is paused already')
  assert.deepEqual(
    await db.query(`select who, verb, subject, why from outbox.operation where verb = 'endpoint pause'`),
    [{ who: 'p-1', verb: 'endpoint pause', subject: 'clinic', why: paused }],
  )
})

test('five in a row within one report pause it too, though a success follows', async () => {
  const reason = { reason: 'auth_rejected' }
  assert.equal((await tell('SRRRRRRSR', reason)).paused, 'endpoint_rejects: auth_rejected, 6 deliveries in a row')
  await forgive(db)
  await tell('RR')
  assert.equal((await tell('RRRS', reason)).paused, 'endpoint_rejects: auth_rejected, 5 deliveries in a row')
})

// case C59
test('one 410 pauses it', async () => {
  assert.equal((await tell('G', { reason: 'gone' })).paused, 'endpoint_rejects: gone')
})

test('a pause of a person stays as it is', async () => {
  await db.query(`update outbox.endpoint set paused_at = now(), paused_reason = 'audit'`)
  assert.equal((await tell('G')).paused, null)
  assert.equal((await row()).paused_reason, 'audit')
})

// case C56
test('the longest time asked for holds, and a shorter one takes nothing back', async () => {
  assert.equal((await tell('_', { backoffMs: 60_000 })).backoff_ms, 60_000)
  await tell('S', { backoffMs: 5_000 })
  assert.deepEqual(await row(), { ...QUIET, backoff: 60 })
})

test('two pollers that report at once are both counted', async () => {
  const [a, b] = [await begin(db), await begin(db)]
  await report(a, [say('FF'), say('R', { endpointId: two.id })], 'a')
  const waiting = report(b, [say('R', { endpointId: two.id }), say('FFF')], 'b')
  await a.commit()
  await waiting
  await b.commit()
  assert.deepEqual([(await row()).failures, (await row(two.id)).rejections], [5, 2])
})

test('a probe that ends after the circuit was closed, by a person or another success, does not open it again', async () => {
  for (const probe of ['failed', 'ended'] as const) {
    await tell('F', { probe, failingMs: 1_000 })
    assert.equal((await row()).tripped, null, probe)
  }
  assert.deepEqual(await row(), { ...QUIET, failures: 2, failing: -1 })
})

test('what was begun before a change of the endpoint is not counted, and its answer says so', async () => {
  await db.query('update outbox.endpoint set version = 2 where id = $1', one.id)
  assert.deepEqual(await report(db, [say('GF', { backoffMs: 9_000 })], 'p-1'), [])
  assert.deepEqual(await row(), QUIET)
  assert.equal((await tell('F', { version: 2 })).rejections, 0)
  await db.query('update outbox.endpoint set version = 1 where id = $1', one.id)
})

test('an endpoint that is retired is not stopped any more: nothing could let go of what its last transactions leave', async () => {
  await db.query('update outbox.endpoint set removed_at = clock_timestamp() where id = $1', two.id)
  for (const letters of ['G', 'RRRRR', 'F'.repeat(20)])
    await report(db, [say(letters, { endpointId: two.id, failingMs: 10_000, backoffMs: 1_000 })], 'p-1')
  assert.deepEqual(await row(two.id), QUIET)
})

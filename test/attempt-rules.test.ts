// The table of classification against real sockets: each row as a first attempt, and after one that may have been applied.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { enqueue, putClinic, testPoller } from './support/clinic.ts'
import { testDatabase } from './support/database.ts'
import { startFaultPeer } from './support/fault-peer.ts'
import { reset } from './support/faults.ts'
import { RULES, type Rule } from './support/rules.ts'
import { openSites, type Place, seenBy } from './support/sites.ts'

const db = await testDatabase()
const sites = await openSites()
const breaking = await startFaultPeer()
breaking.standing(reset)
const poller = testPoller(db, { timeoutMs: 10_000 })

interface Case extends Rule {
  /** Also the name of its endpoint, so that no row is in another one's way. */
  readonly key: string
  readonly url: string
  readonly before: 'nothing' | 'unknown'
}

const cases: readonly Case[] = RULES.flatMap((rule, i) => {
  const { meets } = rule
  const ways =
    typeof meets === 'function'
      ? ([['other', (meets as Place)(sites)]] as const)
      : ([
          ['http', sites.http.url],
          ['https', sites.https.url],
        ] as const)
  return ways.flatMap(([way, url]) =>
    (['nothing', 'unknown'] as const).map((before) => ({ ...rule, url, before, key: `row-${i}-${way}-${before}` })),
  )
})

async function roundsUntilNothingIsDue() {
  while ((await poller.runOnce()).claimed > 0);
}

// Those that come again have met a peer that read them and broke off: as far as anybody knows, they were applied.
for (const { key, url, before, meets, settings } of cases) {
  if (typeof meets !== 'function') for (const peer of [sites.http, sites.https]) peer.meet(key, meets)
  const own = { name: key, partitions: 1, concurrency: 4, ...settings, allowPrivate: true }
  await putClinic(db, before === 'unknown' ? breaking.url : url, own)
  if (before === 'unknown') await enqueue(db, [key], { endpoint: key })
}
await roundsUntilNothingIsDue()
// What is waited for until the deadline goes together, and before the rest, so that it has its time for itself.
for (const slow of [true, false]) {
  for (const { key, url, before, settings } of cases.filter((one) => 'timeoutMs' in one.settings === slow)) {
    await db.query(
      `update outbox.endpoint set url = $2, allow_private = $3::text::boolean, version = version + 1 where name = $1`,
      ...[key, url, String(settings.allowPrivate ?? true)],
    )
    if (before === 'unknown') await db.age(key, '10 minutes')
    else await enqueue(db, [key], { endpoint: key })
  }
  await roundsUntilNothingIsDue()
}

for (const { key, url, before, does, means, wire, settings } of cases) {
  const [outcome, verdict, reason = null] = means.split(' ')
  const [sent, phase, status = null] = wire.split(' ')
  const more = Object.keys(settings).length > 0 ? `, ${JSON.stringify(settings)}` : ''
  test(`${does}, ${new URL(url).protocol} before it ${before}${more}: ${means}`, async () => {
    const number = before === 'unknown' ? 2 : 1
    const found = await db.query<Record<string, unknown>>(
      `select number, outcome, verdict, reason, request_sent, phase, http_status, bytes_in,
         finished_at - started_at as took from outbox.attempts where key = $1 order by number desc`,
      key,
    )
    assert.equal(found.length, number)
    const { bytes_in: read, took, ...attempt } = found[0] ?? {}
    assert.deepEqual(attempt, {
      ...{ number, outcome, verdict, reason, phase },
      ...{ request_sent: sent === 'sent', http_status: status === null ? null : Number(status) },
    })
    assert.ok(Number(read) <= 16_384, `${read} bytes were read`)
    const certainty = before === 'unknown' && outcome !== 'delivered' ? 'unknown' : outcome
    const retry = verdict === 'retry'
    const [delivery] = await db.query<Record<string, unknown>>(
      `select d.certainty, d.state, d.terminal_reason, d.next_attempt_at >= a.finished_at + interval '300 seconds' as waits
       from outbox.deliveries d join outbox.attempts a using (key) where d.key = $1 and a.number = $2::text::int`,
      ...[key, String(number)],
    )
    assert.deepEqual(delivery, {
      ...{ certainty, state: retry ? 'waiting' : verdict, waits: retry ? true : null },
      terminal_reason: retry ? null : (reason?.split(':', 1)[0] ?? null),
    })
    assert.equal(
      seenBy(sites, key, number),
      sent === 'sent' && !url.startsWith(sites.https.url.replace('https:', 'http:')) ? 1 : 0,
    )
  })
}

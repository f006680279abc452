// What can have happened to a delivery before its next attempt, as steps of a table.
import assert from 'node:assert/strict'
import type { Poller } from '../../src/index.ts'
import type { TestDatabase } from './database.ts'
import type { FaultPeer } from './fault-peer.ts'
import { type Fault, silence } from './faults.ts'
import { expire, lease } from './ledger.ts'
import { until } from './until.ts'

interface Stage {
  readonly db: TestDatabase
  readonly peer: FaultPeer
  /** A new one: it owns every lane and remembers nothing. */
  readonly poller: () => Poller
  readonly secrets: Map<string, string>
}

/** The endpoint of a delivery has its key as its name. */
export type Step = (key: string, stage: Stage) => Promise<unknown>

export const round: Step = async (_key, stage) => {
  const poller = stage.poller()
  await poller.runOnce()
  await poller.stop()
}

/** Met like this from now on. */
export const meet =
  (fault: Fault): Step =>
  async (key, { peer }) =>
    peer.meet(key, fault)

export const age =
  (interval: string): Step =>
  (key, { db }) =>
    db.age(key, interval)

/** Sent and answered like this, and ten minutes later. */
export const tried =
  (fault: Fault): Step =>
  async (key, stage) => {
    for (const step of [meet(fault), round, age('10 minutes')]) await step(key, stage)
  }

/** A poller takes it and is never heard of again. */
export const lost: Step = async (key, { db }) => {
  const [endpoint] = await db.query<{ id: number }>('select id from outbox.endpoint where name = $1', key)
  assert.equal((await lease(db, endpoint as { id: number })).length, 1)
  await expire(db, key)
}

/** So often in a row its attempts were lost. */
export const losses =
  (n: number): Step =>
  (key, { db }) =>
    db.query(
      `update outbox.queue
       set lost = ${n}, attempts = ${n}, first_attempt_at = clock_timestamp(), maybe_applied_at = clock_timestamp()
       where delivery_id = (select id from outbox.delivery where key = $1)`,
      key,
    )

/** A column of its endpoint, as put would not have written it. */
export const set =
  (column: string, value: string): Step =>
  (key, { db }) =>
    db.query(`update outbox.endpoint set ${column} = ${value}, version = version + 1 where name = $1`, key)

export const storeDown: Step = async (key, { secrets }) => secrets.delete(`vault:${key}`)

/** Our own stop cuts it: when the peer has read it, or where it reads nothing, when it has the connection. */
export const stopped: Step = async (key, { peer, ...stage }) => {
  peer.meet(key, silence)
  const [poller, before] = [stage.poller(), peer.connections]
  await poller.start()
  await until('it is under way', () => peer.of(key)[0]?.complete || (peer.deaf && peer.connections > before))
  await poller.stop({ graceMs: 0 })
}

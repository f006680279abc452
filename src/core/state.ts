// The states of a delivery, the moves between them, and the words for what is observed and what follows.

/** Open states have a row in `queue`, ended ones a receipt, `purged` only a tombstone. */
export const OPEN_STATES = ['waiting', 'leased', 'parked', 'blocked'] as const
export const ENDED_STATES = ['delivered', 'dead', 'cancelled'] as const
export const STATES = [...OPEN_STATES, ...ENDED_STATES, 'purged'] as const
export type State = (typeof STATES)[number]

/** Which verb moves what: the first comment line of each file in src/sql is held against this table by a test. */
export const MOVES: Readonly<Record<string, string>> = {
  enqueue: 'nothing → waiting | parked',
  'enqueue-many': 'nothing → waiting | parked',
  claim: 'waiting | leased → leased',
  settle: 'leased → delivered | waiting | dead | blocked; parked → waiting',
  late: 'waiting | leased | blocked | dead | cancelled → delivered; parked → waiting',
  mend: 'waiting | leased | blocked | dead | cancelled → delivered; parked → waiting',
  pin: 'leased → leased',
  release: 'leased → waiting',
  hurry: 'waiting → waiting',
  promote: 'parked → waiting',
  purge: 'delivered | dead | cancelled → purged',
}

/** What was observed of one attempt; also its certainty: could the other side have applied it? */
export type Outcome = 'delivered' | 'not_applied' | 'unknown' | 'rejected'

/** What follows from an attempt. `block`: dead, but kept as the head of its ordering key until a person decides. */
export type Verdict = 'delivered' | 'retry' | 'dead' | 'block'

/** How a delivery ended. */
export type Ending = 'delivered' | 'dead' | 'cancelled'

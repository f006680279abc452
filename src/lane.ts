// What a poller knows of one lane.
import type { LaneRow } from './sql/discover.ts'

/** A lane whose attempts take less than this is claimed one batch ahead; a slower one would only hold leases for nothing. */
const QUICK_MS = 50

export interface Lane {
  readonly key: string
  readonly endpointId: number
  readonly lane: number
  cap: number
  /** A due head that has stood still for so long is anybody's. */
  takeOverMs: number
  mine: boolean
  /** Leased here, sent or not. */
  held: number
  /** Only one delivery of its endpoint at a time is let through, to see whether it works again. */
  halfOpen: boolean
  /** Requests in flight. */
  sending: number
  /** Smoothed duration of an attempt; Infinity until one has ended. */
  tookMs: number
  /** On this process's monotonic clock; Infinity: nothing due until discovery says otherwise. */
  dueAt: number
  /** First row at the last discovery, and since when it has been the first: a head that stays is looked after by nobody. */
  head: string | null
  headSince: number
  seen: number
  /** Everything due before this moment of the database's clock has been passed; null: nothing is known yet. */
  floor: number | null
  fullPassAt: number
}

export const keyOf = (endpointId: number, lane: number): string => `${endpointId}/${lane}`

/** Nothing is known of it yet. */
export const newLane = (endpointId: number, lane: number, round: number): Lane => ({
  key: keyOf(endpointId, lane),
  endpointId,
  lane,
  cap: 1,
  takeOverMs: Number.POSITIVE_INFINITY,
  mine: false,
  halfOpen: false,
  held: 0,
  sending: 0,
  tookMs: Number.POSITIVE_INFINITY,
  dueAt: Number.POSITIVE_INFINITY,
  head: null,
  headSince: 0,
  seen: round,
  floor: null,
  fullPassAt: 0,
})

export const isQuick = (lane: Lane): boolean => lane.tookMs < QUICK_MS

/** An endpoint's concurrency split over its lanes, so that no poller needs to know what the others have in flight. */
export function capOf({ lane, concurrency, partitions }: LaneRow): number {
  const partition = lane % 1024
  return Math.max(1, Math.floor(concurrency / partitions) + (partition < concurrency % partitions ? 1 : 0))
}

// A suspect is a delivery whose attempts were lost and which may be what ended its process: how it may be tried again.

/** Losses in a row from which on a delivery is tried with nothing else in flight: once may be chance, twice is suspicion. */
export const SUSPECT_FROM = 2

/** So many losses while it was alone are proof. */
const SUSPECT_LIMIT = 5

export type Suspicion = 'none' | 'suspect' | 'poison'

/** @param lost attempts in a row that were lost with their process: a lease that ran out and no settle */
export function suspicionOf(lost: number): Suspicion {
  if (lost < SUSPECT_FROM) return 'none'
  return lost < SUSPECT_FROM + SUSPECT_LIMIT ? 'suspect' : 'poison'
}

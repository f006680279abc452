// A delivery whose attempts were lost may be what ended its process: how it may be tried again.

/** Losses in a row from which on a delivery is tried with nothing else in flight: once may be chance, twice is suspicion. */
export const ALONE_FROM = 2

/** So many losses while it was alone are proof. */
const ALONE_LIMIT = 5

export type Trial = 'together' | 'alone' | 'poison'

/** @param lost attempts in a row that were lost with their process: a lease that ran out and no settle */
export function trialOf(lost: number): Trial {
  if (lost < ALONE_FROM) return 'together'
  return lost < ALONE_FROM + ALONE_LIMIT ? 'alone' : 'poison'
}

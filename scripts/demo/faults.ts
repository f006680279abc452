// How the receiver misbehaves on purpose: decided by key and attempt alone, so that every run misbehaves alike.
import { createHash } from 'node:crypto'

export type Fault = 'http_503' | 'silent_after_commit' | 'dropped_before_commit' | 'dropped_after_commit'

/** Share of the requests that meet each fault. */
export const SHARES: Readonly<Record<Fault, number>> = {
  http_503: 0.06,
  silent_after_commit: 0.04,
  dropped_before_commit: 0.03,
  dropped_after_commit: 0.03,
}

/** What the first attempt of the two events of the README's story meets. */
const STORY: Readonly<Record<string, Fault>> = {
  'capture-1842': 'silent_after_commit',
  'eligibility.changed:evt_01J8': 'http_503',
}

/** From this attempt on the receiver behaves, so that the demo comes to an end. */
const BEHAVES_FROM = 3

export function faultOf(key: string, attempt: number): Fault | null {
  const told = STORY[key]
  if (told !== undefined) return attempt === 1 ? told : null
  if (attempt >= BEHAVES_FROM) return null
  let point = createHash('sha256').update(`outledger ${attempt} ${key}`).digest().readUInt32BE() / 2 ** 32
  for (const [fault, share] of Object.entries(SHARES)) {
    if (point < share) return fault as Fault
    point -= share
  }
  return null
}

// What one of several live pollers knows of who owns what.
import { Ownership } from '../../src/ownership.ts'

/** Of `me` among `names`; those in `declining` cannot serve endpoint 1. */
export function ownershipOf(me: string, names: readonly string[], declining: readonly string[] = []): Ownership {
  const ownership = new Ownership(me)
  if (declining.includes(me)) ownership.decline(1, 0)
  // Its own row may be older than what it knows.
  ownership.learn(names.map((name) => ({ name, declines: name !== me && declining.includes(name) ? [1] : [] })))
  return ownership
}

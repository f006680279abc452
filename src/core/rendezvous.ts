// Rendezvous hashing: every poller computes the same owner of a lane from the same names; nobody coordinates.

/** 32-bit FNV-1a of a name, then murmur3's finaliser: names that differ in one digit must not share their lanes. */
export function nameHash(name: string): number {
  let hash = 0x811c9dc5
  for (let i = 0; i < name.length; i++) hash = Math.imul(hash ^ name.charCodeAt(i), 0x01000193)
  return mixed(hash)
}

function mixed(value: number): number {
  let hash = value
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return (hash ^ (hash >>> 16)) >>> 0
}

const weight = (hash: number, endpointId: number, lane: number): number =>
  mixed(mixed(hash ^ Math.imul(endpointId, 0x9e3779b1)) ^ Math.imul(lane + 1, 0x85ebca77))

/**
 * Does the poller `me` own this lane among the live ones? Exactly one of them does.
 * When a poller joins or leaves, only the lanes it gets or had change hands.
 */
export function isOwner(me: number, live: readonly number[], endpointId: number, lane: number): boolean {
  const mine = weight(me, endpointId, lane)
  return live.every((other) => {
    const theirs = weight(other, endpointId, lane)
    return theirs < mine || (theirs === mine && other >= me)
  })
}

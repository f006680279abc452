// References to secrets and payloads: no secrets themselves, as long as people keep to that.

/** A reference as a log may show it: what gives access to a place, or is a secret by itself, is left out. */
export function shownReference(reference: string): string {
  if (reference.startsWith('whsec_')) return 'whsec_…'
  const bare = reference.replace(/[?#].*$/s, '?…').replace(/^([a-z][a-z0-9+.-]*:\/\/)[^/]*@/i, '$1')
  return bare.length > 200 ? `${bare.slice(0, 199)}…` : bare
}

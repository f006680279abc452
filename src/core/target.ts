// Where a request may go: the scheme and form of the URL, and the addresses it may be dialled at.
import { BlockList, isIP } from 'node:net'

/** Why this URL cannot be an endpoint, or null. Hosts are judged when they are dialled, not here. */
export function urlProblem(text: string, allowInsecure: boolean): string | null {
  const url = URL.canParse(text) ? new URL(text) : null
  if (url === null) return 'is not a URL'
  if (url.username !== '' || url.password !== '') return 'contains credentials: use a secret reference (authorization)'
  if (url.hash !== '') return 'contains a fragment, which is never sent'
  if (url.protocol === 'https:' || (url.protocol === 'http:' && allowInsecure)) return null
  return url.protocol === 'http:'
    ? 'is http: use https, or allowInsecure for development and receivers inside the cluster'
    : `has the scheme ${url.protocol} and must be https`
}

/** Why no request would be let through to this host, or null; a name is judged by its addresses, when it is dialled. */
export function addressProblem({ hostname }: URL): string | null {
  const host = hostname.replace(/^\[|\]$/g, '')
  return isIP(host) !== 0 && isBlockedAddress(host)
    ? `has the private or special address ${host}: use a public one, or allowPrivate for development and receivers inside the cluster`
    : null
}

// IANA's special-purpose registries; of IPv6, those within what is given out at all.
const BLOCKED: readonly [prefix: string, bits: number, family: 'ipv4' | 'ipv6'][] = [
  ['0.0.0.0', 8, 'ipv4'],
  ['10.0.0.0', 8, 'ipv4'],
  ['100.64.0.0', 10, 'ipv4'],
  ['127.0.0.0', 8, 'ipv4'],
  ['169.254.0.0', 16, 'ipv4'],
  ['172.16.0.0', 12, 'ipv4'],
  ['192.0.0.0', 24, 'ipv4'],
  ['192.0.2.0', 24, 'ipv4'],
  ['192.88.99.0', 24, 'ipv4'],
  ['192.168.0.0', 16, 'ipv4'],
  ['198.18.0.0', 15, 'ipv4'],
  ['198.51.100.0', 24, 'ipv4'],
  ['203.0.113.0', 24, 'ipv4'],
  ['224.0.0.0', 4, 'ipv4'],
  ['240.0.0.0', 4, 'ipv4'],
  ['2001::', 23, 'ipv6'],
  ['2001:db8::', 32, 'ipv6'],
  ['2002::', 16, 'ipv6'],
  ['3fff::', 20, 'ipv6'],
]

const blockList = new BlockList()
for (const [prefix, bits, family] of BLOCKED) blockList.addSubnet(prefix, bits, family)

/** Global unicast (RFC 4291 §2.4), and IPv4 in the form of IPv6: all else is of this host, of this network, or nobody's. */
const given = new BlockList()
given.addSubnet('2000::', 3, 'ipv6')
given.addSubnet('::ffff:0:0', 96, 'ipv6')

/** True for an address that only an endpoint with `allowPrivate` may reach. Mapped IPv4 (::ffff:0:0/96) counts as IPv4. */
export function isBlockedAddress(address: string): boolean {
  const family = isIP(address)
  if (family === 4) return blockList.check(address, 'ipv4')
  return family === 0 || !given.check(address, 'ipv6') || blockList.check(address, 'ipv6')
}

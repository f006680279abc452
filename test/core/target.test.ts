import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isBlockedAddress, urlProblem } from '../../src/core/target.ts'

const ones = (groups: number) => ':ffff'.repeat(groups)

/** Every blocked range: its first and last address, and the neighbours outside (null where another range begins). */
const ranges: readonly (readonly [
  range: string,
  before: string | null,
  first: string,
  last: string,
  after: string | null,
])[] = [
  ['0/8', null, '0.0.0.0', '0.255.255.255', '1.0.0.0'],
  ['10/8', '9.255.255.255', '10.0.0.0', '10.255.255.255', '11.0.0.0'],
  ['100.64/10', '100.63.255.255', '100.64.0.0', '100.127.255.255', '100.128.0.0'],
  ['127/8', '126.255.255.255', '127.0.0.0', '127.255.255.255', '128.0.0.0'],
  ['169.254/16', '169.253.255.255', '169.254.0.0', '169.254.255.255', '169.255.0.0'],
  ['172.16/12', '172.15.255.255', '172.16.0.0', '172.31.255.255', '172.32.0.0'],
  ['192.0.0/24', '191.255.255.255', '192.0.0.0', '192.0.0.255', '192.0.1.0'],
  ['192.0.2/24', '192.0.1.255', '192.0.2.0', '192.0.2.255', '192.0.3.0'],
  ['192.88.99/24', '192.88.98.255', '192.88.99.0', '192.88.99.255', '192.88.100.0'],
  ['192.168/16', '192.167.255.255', '192.168.0.0', '192.168.255.255', '192.169.0.0'],
  ['198.18/15', '198.17.255.255', '198.18.0.0', '198.19.255.255', '198.20.0.0'],
  ['198.51.100/24', '198.51.99.255', '198.51.100.0', '198.51.100.255', '198.51.101.0'],
  ['203.0.113/24', '203.0.112.255', '203.0.113.0', '203.0.113.255', '203.0.114.0'],
  ['224/4', '223.255.255.255', '224.0.0.0', '239.255.255.255', null],
  ['240/4', null, '240.0.0.0', '255.255.255.255', null],
  ['all below 2000::/3', null, '::', `1fff${ones(7)}`, '2000::'],
  ['all above 2000::/3', `3fff${ones(7)}`, '4000::', `ffff${ones(7)}`, null],
  ['::/96', null, '::', `::ffff:ffff`, null],
  ['IPv4-translated ::ffff:0:0:0/96', null, '::ffff:0:0:0', '::ffff:0:ffff:ffff', null],
  ['64:ff9b::/96', null, '64:ff9b::', '64:ff9b::ffff:ffff', null],
  ['64:ff9b:1::/48', null, '64:ff9b:1::', `64:ff9b:1${ones(5)}`, null],
  ['100::/64', null, '100::', `100:0:0:0${ones(4)}`, null],
  ['2001::/23', `2000${ones(7)}`, '2001::', `2001:1ff${ones(6)}`, '2001:200::'],
  ['2001:db8::/32', `2001:db7${ones(6)}`, '2001:db8::', `2001:db8${ones(6)}`, '2001:db9::'],
  ['2002::/16', `2001${ones(7)}`, '2002::', `2002${ones(7)}`, '2003::'],
  ['3fff::/20', `3ffe${ones(7)}`, '3fff::', `3fff:fff${ones(6)}`, '3fff:1000::'],
  ['5f00::/16', null, '5f00::', `5f00${ones(7)}`, null],
  ['fc00::/7', null, 'fc00::', `fdff${ones(7)}`, null],
  ['fe80::/10', null, 'fe80::', `febf${ones(7)}`, null],
  ['fec0::/10', null, 'fec0::', `feff${ones(7)}`, null],
  ['ff00::/8', null, 'ff00::', `ffff${ones(7)}`, null],
]

for (const [range, before, first, last, after] of ranges) {
  test(`${range} is blocked from its first address to its last, and its neighbours are not`, () => {
    assert.deepEqual([first, last].map(isBlockedAddress), [true, true])
    for (const neighbour of [before, after])
      if (neighbour !== null) assert.equal(isBlockedAddress(neighbour), false, neighbour)
  })
}

test('an IPv4 address in IPv6 clothes is judged as the IPv4 address', () => {
  for (const [, before, first, last, after] of ranges) {
    if (first.includes(':')) continue
    for (const prefix of ['::ffff:', '::FFFF:', '0:0:0:0:0:ffff:']) {
      assert.ok(isBlockedAddress(prefix + first) && isBlockedAddress(prefix + last), prefix + first)
      for (const neighbour of [before, after])
        if (neighbour !== null) assert.equal(isBlockedAddress(prefix + neighbour), false, prefix + neighbour)
    }
  }
  assert.equal(isBlockedAddress('::ffff:7f00:1'), true)
  assert.equal(isBlockedAddress('::ffff:808:808'), false)
})

test('what is no address at all, or carries a zone, is blocked', () => {
  for (const text of ['', 'localhost', '127.1', '2130706433', '0x7f.1', '[::1]', 'fe80::1%lo', '1.2.3.4.5', '1.2.3'])
    assert.equal(isBlockedAddress(text), true, text)
})

test('public addresses may be dialled', () => {
  for (const address of ['8.8.8.8', '1.1.1.1', '172.15.0.1', '2606:4700::1111', '2a00:1450:4001:80b::200e'])
    assert.equal(isBlockedAddress(address), false, address)
})

test('every spelling of an address ends as the one that is judged', () => {
  for (const host of ['2130706433', '0x7f.1', '127.1', '0177.0.0.1', '017700000001', '①②⑦.⓪.⓪.①', '127.0.0.1.'])
    assert.equal(new URL(`https://${host}/`).hostname, '127.0.0.1', host)
  for (const host of ['[::1]', '[0:0:0:0:0:0:0:1]', '[::127.0.0.1]', '[::ffff:127.0.0.1]', '[fe80::1]'])
    assert.equal(isBlockedAddress(new URL(`https://${host}/`).hostname.slice(1, -1)), true, host)
})

const HTTPS_ONLY = 'is http: use https, or allowInsecure for development and receivers inside the cluster'
const CREDENTIALS = 'contains credentials: use a secret reference (authorization)'

const urls: readonly (readonly [why: string, url: string, wanted: string | null, insecure?: string | null])[] = [
  ['https', 'https://clinic.example/hooks?tenant=7', null],
  ['a port', 'https://clinic.example:8443/', null],
  ['an address, which is judged when it is dialled', 'https://127.0.0.1/', null],
  ['an IPv6 address', 'https://[::1]/', null],
  ['another spelling of the scheme', 'HTTPS://clinic.example', null],
  ['http', 'http://clinic.example/', HTTPS_ONLY, null],
  ['a user', 'https://me@clinic.example/', CREDENTIALS],
  ['a user and a password', 'https://me:pw@clinic.example/', CREDENTIALS],
  ['only a password', 'https://:pw@clinic.example/', CREDENTIALS],
  ['credentials over http', 'http://me:pw@clinic.example/', CREDENTIALS],
  ['a fragment', 'https://clinic.example/#top', 'contains a fragment, which is never sent'],
  ['another scheme', 'ftp://clinic.example/', 'has the scheme ftp: and must be https'],
  ['a scheme that resembles it', 'httpss://clinic.example/', 'has the scheme httpss: and must be https'],
  ['web sockets', 'wss://clinic.example/', 'has the scheme wss: and must be https'],
  ['script', 'javascript:alert(1)', 'has the scheme javascript: and must be https'],
  ['a file', 'file:///etc/passwd', 'has the scheme file: and must be https'],
  ['no scheme', 'clinic.example/hooks', 'is not a URL'],
  ['no host', 'https://', 'is not a URL'],
  ['a blank in the host', 'https://clinic example/', 'is not a URL'],
  ['a port that does not exist', 'https://clinic.example:99999/', 'is not a URL'],
  ['nothing', '', 'is not a URL'],
]

for (const [why, url, wanted, insecure = wanted] of urls) {
  test(`URL with ${why}: ${wanted ?? 'accepted'}`, () => {
    assert.equal(urlProblem(url, false), wanted)
    assert.equal(urlProblem(url, true), insecure, 'with allowInsecure')
  })
}

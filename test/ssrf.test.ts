// Where a request may not go: every spelling of every private or special address, names that mean one, redirects to one.
import assert from 'node:assert/strict'
import { subscribe } from 'node:diagnostics_channel'
import type { LookupAddress } from 'node:dns'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { after, test } from 'node:test'
import { promisify } from 'node:util'
import { OutledgerError } from '../src/index.ts'
import { publicLookup } from '../src/public-lookup.ts'
import { enqueue, putClinic, testPoller } from './support/clinic.ts'
import { testDatabase } from './support/database.ts'
import { startFaultPeer } from './support/fault-peer.ts'
import { redirect } from './support/faults.ts'
import { resolveAs } from './support/resolver.ts'

const db = await testDatabase()
const poller = testPoller(db)

/** All of this machine, IPv4 and IPv6: whatever means it arrives here. */
let reached = 0
const inside = createServer((socket) => {
  reached++
  socket.on('error', () => {}).end('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n')
}).listen(0, '::')
await once(inside, 'listening')
after(() => inside.close())
const { port } = inside.address() as AddressInfo

const databasePort = Number(new URL(db.url).port)
const dialled: string[] = []
subscribe('net.client.socket', (message) => {
  const { socket } = message as { socket: Socket }
  socket.on('connectionAttempt', (address: string, port: number) => port !== databasePort && dialled.push(address))
})

const LOOPBACK = [
  '127.0.0.1',
  '127.0.0.2',
  '127.1',
  '127.0.1',
  '2130706433',
  '0x7f000001',
  '0x7f.1',
  '0X7F.0.0.1',
  '0177.0.0.1',
  '017700000001',
  '127.0.0.1.',
  '①②⑦.⓪.⓪.①',
  '[::1]',
  '[0:0:0:0:0:0:0:1]',
  '[0::1]',
  '[::0.0.0.1]',
  '[::ffff:127.0.0.1]',
  '[::FFFF:7f00:1]',
  '[0:0:0:0:0:ffff:7f00:1]',
]
const OTHERS = [
  ...[
    '0.0.0.0',
    '0',
    '0x0',
    '0.1.2.3',
    '10.0.0.1',
    '012.0.0.1',
    '167772161',
    '100.64.0.1',
    '169.254.169.254',
    '2852039166',
    '0xa9fea9fe',
  ],
  ...[
    '172.16.0.1',
    '172.31.255.255',
    '192.0.0.8',
    '192.0.2.1',
    '192.88.99.1',
    '192.168.1.1',
    '192.168.257',
    '198.18.0.1',
    '198.19.255.255',
  ],
  ...['198.51.100.1', '203.0.113.1', '224.0.0.1', '239.255.255.250', '240.0.0.1', '255.255.255.255', '4294967295'],
  ...[
    '[::]',
    '[::127.0.0.1]',
    '[::7f00:1]',
    '[::ffff:169.254.169.254]',
    '[::ffff:a00:1]',
    '[64:ff9b::127.0.0.1]',
    '[64:ff9b::a9fe:a9fe]',
  ],
  ...[
    '[64:ff9b:1::1]',
    '[100::1]',
    '[2001::1]',
    '[2001:0:4136:e378:8000:63bf:3fff:fdd2]',
    '[2001:db8::1]',
    '[2002:7f00:1::]',
    '[3fff::1]',
  ],
  ...['[5f00::1]', '[fc00::1]', '[fd00:ec2::254]', '[fe80::1]', '[fec0::1]', '[ff02::1]'],
]
const urlOf = (host: string) => `http://${host}:${port}/hooks`

test('an address in any spelling is refused by put, which says what would permit it', async () => {
  for (const host of [...LOOPBACK, ...OTHERS])
    await assert.rejects(
      putClinic(db, urlOf(host), { name: 'refused', allowPrivate: false }),
      (error) =>
        error instanceof OutledgerError &&
        error.code === 'invalid_endpoint' &&
        /private or special .+ or allowPrivate/.test(error.message),
      host,
    )
  for (const host of ['[fe80::1%25lo]', '[fe80::1%lo]', '[::1', '127.0.0.1.5', '256.0.0.1', '0x100000000'])
    await assert.rejects(putClinic(db, urlOf(host), { name: 'refused', allowPrivate: false }), /is not a URL/, host)
  assert.deepEqual(await db.query('select 1 from outbox.endpoint'), [])
  await putClinic(db, 'https://8.8.8.8/hooks', { name: 'public', allowPrivate: false })
})

/** One delivery to each, the settings being there already, as an older version or another hand has written them. */
async function deliverTo(prefix: string, hosts: readonly string[], allowPrivate: boolean) {
  const names = hosts.map((_, i) => `${prefix}-${i}`)
  for (const [i, name] of names.entries()) {
    await putClinic(db, urlOf(hosts[i] as string), { name, partitions: 1, concurrency: 1 })
    await enqueue(db, [name], { endpoint: name })
  }
  await db.query(
    `update outbox.endpoint set allow_private = ${allowPrivate}, version = version + 1 where name like $1`,
    `${prefix}-%`,
  )
  while ((await poller.runOnce()).claimed > 0);
  return db.query(
    `select d.state, a.outcome, a.reason, a.request_sent, a.phase, count(*)::int as n
     from outbox.deliveries d join outbox.attempts a using (key) where key like $1 group by 1, 2, 3, 4, 5`,
    `${prefix}-%`,
  )
}
const BLOCKED = {
  state: 'dead',
  outcome: 'not_applied',
  reason: 'blocked_address',
  request_sent: false,
  phase: 'prepare',
}

test('nor is it dialled when the endpoint has it nevertheless', async () => {
  const hosts = [...LOOPBACK, ...OTHERS]
  assert.deepEqual(await deliverTo('blocked', hosts, false), [{ ...BLOCKED, n: hosts.length }])
  assert.equal(reached, 0)
  assert.deepEqual(dialled, [])
})

test('where private addresses are allowed, each spelling of this machine reaches it', async () => {
  const [row, ...others] = await deliverTo('allowed', LOOPBACK, true)
  assert.deepEqual([row?.state, row?.n, others.length], ['delivered', LOOPBACK.length, 0])
  assert.ok(reached >= new Set(LOOPBACK.map((host) => new URL(urlOf(host)).host)).size)
})

const PUBLIC = ['93.184.215.14', '2606:2800:21f:cb07::1']
let changed = false
const asked = resolveAs({
  'private.test': ['10.0.0.7', '127.0.0.1', '::1', '::ffff:127.0.0.1', 'fd00::1'],
  'mixed.test': ['127.0.0.1', PUBLIC[0] as string, '169.254.169.254', '::1', PUBLIC[1] as string, '::ffff:10.0.0.1'],
  'changing.test': () => (changed ? ['127.0.0.1', '::1'] : PUBLIC),
})
const lookup = promisify(publicLookup) as unknown as (
  name: string,
  options: object,
) => Promise<LookupAddress[] | string>

test('a name that means only private addresses is not dialled, and that is no failure of the resolver', async () => {
  const before = reached
  assert.deepEqual(await deliverTo('named', ['private.test', 'localhost'], false), [{ ...BLOCKED, n: 2 }])
  assert.equal(reached, before)
})

test('of a name with public and private addresses only the public ones can be dialled', async () => {
  assert.deepEqual(
    ((await lookup('mixed.test', { all: true })) as LookupAddress[]).map(({ address }) => address),
    PUBLIC,
  )
  assert.equal(await lookup('mixed.test', {}), PUBLIC[0])
})

test('a name that was public a moment ago is judged by what it means now, and looked up only once', async () => {
  const before = reached
  await putClinic(db, urlOf('changing.test'), { name: 'changing', allowPrivate: false })
  assert.equal(asked.get('changing.test'), undefined, 'put does not ask: what it heard would be out of date')
  assert.equal(await lookup('changing.test', {}), PUBLIC[0])
  changed = true
  await enqueue(db, ['changing'], { endpoint: 'changing' })
  await poller.runOnce()
  assert.deepEqual(
    await db.query(`select state, terminal_reason as reason from outbox.deliveries where key = 'changing'`),
    [{ state: 'dead', reason: 'blocked_address' }],
  )
  assert.equal(asked.get('changing.test'), 2)
  assert.equal(reached, before)
})

// case C51
test('no redirect is followed, neither to a page that answers 200 nor to the metadata of a cloud', async () => {
  const peer = await startFaultPeer()
  const before = reached
  dialled.splice(0)
  const targets = [
    `http://127.0.0.1:${port}/`,
    `http://[::1]:${port}/`,
    'http://169.254.169.254/latest/meta-data/',
    '/elsewhere',
  ]
  const keys = targets.flatMap((target, i) =>
    [301, 302, 303, 307, 308].map((code) => {
      peer.meet(`redirect-${code}-${i}`, redirect(code, target))
      return `redirect-${code}-${i}`
    }),
  )
  await putClinic(db, peer.url, { name: 'redirecting' })
  await enqueue(db, keys, { endpoint: 'redirecting' })
  await poller.runOnce()
  for (const key of keys) assert.equal(peer.of(key).length, 1, key)
  assert.ok(peer.seen.every(({ head }) => head.startsWith('POST /hooks ')))
  assert.equal(reached, before)
  assert.deepEqual([...new Set(dialled)], ['127.0.0.1'])
  assert.equal(dialled.length, peer.connections, 'and only the peer itself')
  const delivered = `select 1 from outbox.deliveries where key like 'redirect-%' and state = 'delivered'`
  assert.deepEqual(await db.query(delivered), [])
})

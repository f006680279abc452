import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { test } from 'node:test'
import { Webhook } from 'standardwebhooks'
import { isSigned, secretBytes, signatureHeader } from '../../src/core/signature.ts'

const secret = (bytes: number, fill = 7) => `whsec_${Buffer.alloc(bytes, fill).toString('base64')}`
const bytesOf = (text: string) => secretBytes(text) as Buffer

// The oracle only accepts timestamps near its own clock.
const now = () => String(Math.floor(Date.now() / 1000))

const verify = (secretText: string, id: string, timestamp: string, signature: string, body: Buffer) =>
  new Webhook(secretText).verify(body.toString(), {
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    'webhook-signature': signature,
  })

const bodies: readonly (readonly [why: string, body: Buffer])[] = [
  ['an object', Buffer.from('{"amount":1842}')],
  ['spelling that a parser would change', Buffer.from('{ "b":1e2,"a":9007199254740993,"a":1.0 }')],
  ['text beyond ASCII', Buffer.from('{"name":"Zoë 🩺 \\u0000"}')],
  ['dots, which separate the signed parts', Buffer.from('["a.b.c"]')],
  ['256 KiB', Buffer.from(JSON.stringify(['x'.repeat(262_140)]))],
]

for (const [why, body] of bodies) {
  test(`the reference implementation verifies our signature over ${why}`, () => {
    const timestamp = now()
    const header = signatureHeader([bytesOf(secret(32))], 'evt_1:clinic', timestamp, body)
    assert.deepEqual(verify(secret(32), 'evt_1:clinic', timestamp, header, body), JSON.parse(body.toString()))
    assert.equal(
      header,
      new Webhook(secret(32)).sign('evt_1:clinic', new Date(Number(timestamp) * 1000), body.toString()),
    )
  })
}

test('the reference implementation refuses it for another id, time, body or secret', () => {
  const timestamp = now()
  const body = Buffer.from('{"amount":1842}')
  const header = signatureHeader([bytesOf(secret(32))], 'evt_1', timestamp, body)
  const refused = { name: 'WebhookVerificationError' }
  assert.throws(() => verify(secret(32), 'evt_2', timestamp, header, body), refused)
  assert.throws(() => verify(secret(32), 'evt_1', String(Number(timestamp) - 1), header, body), refused)
  assert.throws(() => verify(secret(32), 'evt_1', timestamp, header, Buffer.from('{"amount":1843}')), refused)
  assert.throws(() => verify(secret(32, 8), 'evt_1', timestamp, header, body), refused)
})

test('during a rotation the current secret signs first, then the others, and a receiver with any of them is content', () => {
  const timestamp = now()
  const body = Buffer.from('[]')
  const secrets = [secret(24, 1), secret(32, 2), secret(64, 3)]
  const header = signatureHeader(secrets.map(bytesOf), 'evt_1', timestamp, body)
  assert.deepEqual(
    header.split(' '),
    secrets.map((one) => signatureHeader([bytesOf(one)], 'evt_1', timestamp, body)),
  )
  for (const one of secrets) assert.deepEqual(verify(one, 'evt_1', timestamp, header, body), [])
})

test('bytes that are no UTF-8 are signed as they are', () => {
  const body = Buffer.from([0x5b, 0x22, 0xff, 0xfe, 0xc3, 0x28, 0x22, 0x5d])
  const signed = Buffer.concat([Buffer.from('evt_1.1700000000.'), body])
  const wanted = `v1,${createHmac('sha256', Buffer.alloc(32, 7)).update(signed).digest('base64')}`
  assert.equal(signatureHeader([bytesOf(secret(32))], 'evt_1', '1700000000', body), wanted)
  // Their replacement character would give another signature.
  assert.notEqual(signatureHeader([bytesOf(secret(32))], 'evt_1', '1700000000', Buffer.from(body.toString())), wanted)
})

const forms: readonly (readonly [why: string, secret: string, bytes: number | null])[] = [
  ['24 bytes, the least', secret(24), 24],
  ['25 bytes, with padding', secret(25), 25],
  ['26 bytes, with more padding', secret(26), 26],
  ['64 bytes, the most', secret(64), 64],
  ['23 bytes', secret(23), null],
  ['one byte', secret(1), null],
  ['65 bytes', secret(65), null],
  ['nothing', '', null],
  ['only the prefix', 'whsec_', null],
  ['no prefix', secret(32).slice(6), null],
  ['another prefix', secret(32).replace('whsec_', 'whsk_'), null],
  ['a prefix in capitals', secret(32).replace('whsec_', 'WHSEC_'), null],
  ['padding left out', secret(25).replaceAll('=', ''), null],
  ['too much padding', `${secret(24)}=`, null],
  ['three signs of padding', `${secret(24)}A===`, null],
  ['padding in the middle', secret(24).replace('whsec_BwcH', 'whsec_Bwc='), null],
  ['base64url', `whsec_${Buffer.alloc(33, 0xff).toString('base64url')}`, null],
  ['a blank before it', ` ${secret(32)}`, null],
  ['a line break after it', `${secret(32)}\n`, null],
  ['hexadecimal of 24 bytes with a colon', `whsec_${'07:'.repeat(24)}`, null],
  ['two secrets', `${secret(24)} ${secret(24)}`, null],
]

for (const [why, text, wanted] of forms) {
  test(`a secret of ${why} is ${wanted === null ? 'refused' : 'taken'}`, () => {
    assert.deepEqual(secretBytes(text), wanted === null ? null : Buffer.alloc(wanted, 7))
  })
}

const body = Buffer.from('{"amount":1842}')
const [mine, other] = [bytesOf(secret(32)), bytesOf(secret(32, 8))]
const signed = (secrets: Buffer[], timestamp = '1700000000') => signatureHeader(secrets, 'evt_1', timestamp, body)

const headers: readonly (readonly [why: string, header: string, timestamp: string, wanted: boolean])[] = [
  ['its signature', signed([mine]), '1700000000', true],
  ['its signature among others', `v1a,xyz ${signed([other, mine])}`, '1700000000', true],
  ['the signature of another secret', signed([other]), '1700000000', false],
  ['another time', signed([mine]), '1700000001', false],
  ['a time that is no number, though signed', signed([mine], '1700000000abc'), '1700000000abc', false],
  ['no time, though signed', signed([mine], ''), '', false],
  ['another version', signed([mine]).replace('v1,', 'v2,'), '1700000000', false],
  ['the signature cut short', signed([mine]).slice(0, -1), '1700000000', false],
  ['the signature and more', `${signed([mine])}=`, '1700000000', false],
  ['nothing', '', '1700000000', false],
]

for (const [why, header, timestamp, wanted] of headers)
  test(`a request with ${why} is ${wanted ? '' : 'not '}signed`, () => {
    assert.equal(isSigned([mine], 'evt_1', timestamp, body, header), wanted)
    assert.equal(isSigned([], 'evt_1', timestamp, body, header), false)
    assert.equal(isSigned([mine], 'evt_2', timestamp, body, header), false)
    assert.equal(isSigned([mine], 'evt_1', timestamp, Buffer.from('{}'), header), false)
  })

test('the signature of the reference implementation is recognised', () => {
  const header = new Webhook(secret(32)).sign('evt_1', new Date(1_700_000_000_000), body.toString())
  assert.equal(isSigned([other, mine], 'evt_1', '1700000000', body, header), true)
})

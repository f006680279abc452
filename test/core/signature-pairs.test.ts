// Each request before two verifiers: ours and the npm package `standardwebhooks`. Where they differ, the table says so.
import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { test } from 'node:test'
import { Webhook } from 'standardwebhooks'
import { isSigned, secretBytes, signatureHeader } from '../../src/core/signature.ts'

const secretOf = (fill: number, bytes = 32) => `whsec_${Buffer.alloc(bytes, fill).toString('base64')}`
const [OLD, NEW, OTHER] = [secretOf(1), secretOf(2), secretOf(3)]
const BODY = Buffer.from('{"name":"Zoë","n":1e2}')
// Theirs accepts only times near its own clock.
const NOW = String(Math.floor(Date.now() / 1000))

interface Request {
  readonly id: string
  readonly timestamp: string
  readonly body: Buffer
  readonly header: string
}

/** Signed by anybody: the bytes of the parts, whatever they are. */
function entry(key: Buffer, { id = 'evt_1:clinic', timestamp = NOW, body = BODY }: Partial<Request> = {}): string {
  return `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest('base64')}`
}
const keyOf = (secret: string) => Buffer.from(secret.slice('whsec_'.length), 'base64')
const by = (secret: string, more: Partial<Request> = {}) => entry(keyOf(secret), more)

const ours = (secrets: readonly string[], { id, timestamp, body, header }: Request): boolean =>
  isSigned(
    secrets.flatMap((secret) => secretBytes(secret) ?? []),
    id,
    timestamp,
    body,
    header,
  )

const theirs = (secrets: readonly string[], { id, timestamp, body, header }: Request): boolean =>
  secrets.some((secret) => {
    try {
      const headers = { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': header }
      new Webhook(secret).verify(body, headers, { jsonParse: false })
      return true
    } catch {
      return false
    }
  })

type Row = readonly [
  why: string,
  secrets: readonly string[],
  request: Partial<Request>,
  ours: boolean,
  theirs?: boolean,
]

const good = by(NEW)
const bytes = Buffer.from([0x5b, 0x22, 0xff, 0xfe, 0xc3, 0x28, 0x22, 0x5d])
const signedLine = (line: string): Partial<Request> => ({ timestamp: line, header: by(NEW, { timestamp: NOW }) })

const rows: readonly Row[] = [
  ['its one signature', [NEW], {}, true],
  ['a receiver that has both secrets', [OLD, NEW], {}, true],
  ['a receiver that has both, in the other order', [NEW, OLD], {}, true],
  ['both signatures, and a receiver with the old secret', [OLD], { header: `${good} ${by(OLD)}` }, true],
  ['both signatures, and a receiver with the new secret', [NEW], { header: `${good} ${by(OLD)}` }, true],
  ['the old signature alone, and a receiver that has changed over', [NEW], { header: by(OLD) }, false],
  ['a receiver without a secret', [], {}, false],
  ['a signature of a stranger', [NEW, OLD], { header: by(OTHER) }, false],
  ['another id', [NEW], { id: 'evt_1:ledger' }, false],
  ['the id in capitals', [NEW], { id: 'EVT_1:clinic' }, false],
  ['no id, though signed', [NEW], { id: '', header: by(NEW, { id: '' }) }, false],
  ['a later time', [NEW], { timestamp: String(Number(NOW) + 1) }, false],
  ['an earlier time', [NEW], { timestamp: String(Number(NOW) - 1) }, false],
  ['another body', [NEW], { body: Buffer.from('{"name":"Zoë","n":1e3}') }, false],
  ['a body that only reads the same', [NEW], { body: Buffer.from('{"name":"Zoë","n":100}') }, false],
  ['a line break after the body', [NEW], { body: Buffer.concat([BODY, Buffer.from('\n')]) }, false],
  ['half of the body', [NEW], { body: BODY.subarray(0, 10) }, false],
  ['an empty body, signed as such', [NEW], { body: Buffer.alloc(0), header: by(NEW, { body: Buffer.alloc(0) }) }, true],
  ['a body of 1 MB', [NEW], { body: Buffer.alloc(1e6, 'x'), header: by(NEW, { body: Buffer.alloc(1e6, 'x') }) }, true],
  ['a body that is no UTF-8', [NEW], { body: bytes, header: by(NEW, { body: bytes }) }, true, false],
  [
    'a body that is no UTF-8, signed as what replaces it',
    [NEW],
    { body: bytes, header: by(NEW, { body: Buffer.from(bytes.toString()) }) },
    false,
    true,
  ],
  // Times that are read as the signed one, and are not it.
  ['letters after the time', [NEW], signedLine(`${NOW}abc`), false, true],
  ['a fraction of a second', [NEW], signedLine(`${NOW}.5`), false, true],
  ['a plus before the time', [NEW], signedLine(`+${NOW}`), false, true],
  ['a blank before the time', [NEW], signedLine(` ${NOW}`), false, true],
  ['a nought before the time', [NEW], signedLine(`0${NOW}`), false, true],
  ['two times in one header', [NEW], signedLine(`${NOW}, ${NOW}`), false, true],
  ['a line break after the time', [NEW], signedLine(`${NOW}\n`), false, true],
  [
    'letters after the time, signed as well',
    [NEW],
    { timestamp: `${NOW}abc`, header: by(NEW, { timestamp: `${NOW}abc` }) },
    false,
  ],
  [
    'microseconds, signed as such',
    [NEW],
    { timestamp: `${NOW}000000`, header: by(NEW, { timestamp: `${NOW}000000` }) },
    false,
  ],
  ['a negative time', [NEW], { timestamp: `-${NOW}`, header: by(NEW, { timestamp: `-${NOW}` }) }, false],
  ['digits of another script', [NEW], { timestamp: '١٧٠٠', header: by(NEW, { timestamp: '١٧٠٠' }) }, false],
  ['no time, though signed', [NEW], { timestamp: '', header: by(NEW, { timestamp: '' }) }, false],
  // Secrets that are too short to be any.
  ['a secret of one byte', [secretOf(7, 1)], { header: by(secretOf(7, 1)) }, false, true],
  ['a secret of 23 bytes', [secretOf(7, 23)], { header: by(secretOf(7, 23)) }, false, true],
  ['a secret of 24 bytes', [secretOf(7, 24)], { header: by(secretOf(7, 24)) }, true],
  ['a secret of 64 bytes', [secretOf(7, 64)], { header: by(secretOf(7, 64)) }, true],
  ['a secret of 65 bytes', [secretOf(7, 65)], { header: by(secretOf(7, 65)) }, false, true],
  // Lists.
  ['no signature', [NEW], { header: '' }, false],
  ['blanks only', [NEW], { header: '   ' }, false],
  ['two blanks between', [NEW], { header: `${by(OTHER)}  ${good}` }, true],
  ['blanks around', [NEW], { header: `  ${good}  ` }, true],
  ['a tab between', [NEW], { header: `${by(OTHER)}\t${good}` }, false],
  ['the same entry twice', [NEW], { header: `${good} ${good}` }, true],
  ['999 of strangers before it', [NEW], { header: `${`${by(OTHER)} `.repeat(999)}${good}` }, true],
  ['1,000 of strangers', [NEW], { header: Array(1_000).fill(by(OTHER)).join(' ') }, false],
  ['an asymmetric one before it', [NEW], { header: `v1a,${'A'.repeat(88)} ${good}` }, true],
  ['ours called asymmetric', [NEW], { header: good.replace('v1,', 'v1a,') }, false],
  ['another version', [NEW], { header: good.replace('v1,', 'v2,') }, false],
  ['a version in capitals', [NEW], { header: good.replace('v1,', 'V1,') }, false],
  ['no version', [NEW], { header: good.slice(3) }, false],
  ['a blank after the comma', [NEW], { header: good.replace(',', ', ') }, false],
  ['an equals sign for the comma', [NEW], { header: good.replace(',', '=') }, false],
  ['something behind a second comma', [NEW], { header: `${good},x` }, false, true],
  // What joins two header lines; the list of the standard has blanks only.
  ['commas between', [NEW], { header: `${good}, ${by(OTHER)}` }, false, true],
  // Base64.
  ['without padding', [NEW], { header: good.replaceAll('=', '') }, false],
  ['with more padding', [NEW], { header: `${good}=` }, false],
  ['cut short', [NEW], { header: good.slice(0, -2) }, false],
  ['longer by one', [NEW], { header: `${good}A` }, false],
  ['spare bits set', [NEW], { header: good.replace(/.=$/, (end) => `${spare(end[0] ?? '')}=`) }, false],
  ['in lower case', [NEW], { header: good.toLowerCase() }, false],
  ['as base64url', [NEW], urlSafe(), false],
  ['in hexadecimal', [NEW], { header: `v1,${Buffer.from(good.slice(3), 'base64').toString('hex')}` }, false],
]

/** Another last letter of the same bytes: base64 of 32 bytes leaves two bits over. */
function spare(letter: string): string {
  const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'
  return letters[letters.indexOf(letter) + 1] ?? ''
}

/** One that has a sign that the two alphabets do not share. */
function urlSafe(): Partial<Request> {
  for (let n = 0; ; n++) {
    const id = `evt_${n}`
    const header = by(NEW, { id })
    if (/[+/]/.test(header)) return { id, header: header.replaceAll('+', '-').replaceAll('/', '_') }
  }
}

for (const [why, secrets, given, wanted, other = wanted] of rows)
  test(`${why}: ${wanted ? 'taken' : 'refused'}${other === wanted ? '' : ', unlike by the other'}`, () => {
    const request = { id: 'evt_1:clinic', timestamp: NOW, body: BODY, header: good, ...given }
    assert.equal(ours(secrets, request), wanted)
    assert.equal(theirs(secrets, request), other)
  })

test('each verifier takes what the other side signs, with one secret and with three', () => {
  const secrets = [secretOf(4, 24), secretOf(5, 33), secretOf(6, 64)]
  for (const count of [1, 3]) {
    const some = secrets.slice(0, count)
    const signers = some.map((secret) => secretBytes(secret) as Buffer)
    const request = { id: 'k'.repeat(255), timestamp: NOW, body: BODY }
    const header = signatureHeader(signers, request.id, NOW, BODY)
    for (const secret of some) assert.ok(theirs([secret], { ...request, header }))
    const foreign = some.map((secret) =>
      new Webhook(secret).sign(request.id, new Date(Number(NOW) * 1000), BODY.toString()),
    )
    for (const secret of some) assert.ok(ours([secret], { ...request, header: foreign.join(' ') }))
    assert.equal(header, foreign.join(' '))
  }
})

test('bytes that are no secret verify nothing, however they came to the verifier', () => {
  for (const length of [0, 1, 23, 65]) {
    const key = Buffer.alloc(length, 7)
    assert.equal(isSigned([key], 'evt_1:clinic', NOW, BODY, entry(key)), false, `${length} bytes`)
  }
})

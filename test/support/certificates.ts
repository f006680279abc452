// Certificates for peers on loopback, made when they are needed: X.509 by a small DER writer, signed by node:crypto.
import { createPrivateKey, generateKeyPairSync, type KeyObject, sign } from 'node:crypto'

/** PEM of both. */
export interface Identity {
  readonly key: string
  readonly cert: string
}

export const CERTIFICATES = ['valid', 'expired', 'not-yet-valid', 'wrong-name', 'self-signed', 'unknown-ca'] as const
export type CertificateKind = (typeof CERTIFICATES)[number]

const DAY_MS = 86_400_000

const tagged = (tag: number, ...parts: Uint8Array[]): Buffer => {
  const content = Buffer.concat(parts)
  const n = content.length
  const length = n < 0x80 ? [n] : n < 0x100 ? [0x81, n] : [0x82, n >> 8, n & 0xff]
  return Buffer.concat([Buffer.from([tag, ...length]), content])
}
const sequence = (...parts: Uint8Array[]) => tagged(0x30, ...parts)
const oid = (hex: string) => tagged(0x06, Buffer.from(hex, 'hex'))

const ECDSA_WITH_SHA256 = sequence(oid('2a8648ce3d040302'))
const named = (name: string) => sequence(tagged(0x31, sequence(oid('550403'), tagged(0x0c, Buffer.from(name)))))
const time = (ms: number) => tagged(0x18, Buffer.from(`${new Date(ms).toISOString().replace(/\D/g, '').slice(0, 14)}Z`))
const extension = (id: string, value: Buffer, critical = false) =>
  sequence(oid(id), ...(critical ? [tagged(0x01, Buffer.from([0xff]))] : []), tagged(0x04, value))

const CA = extension('551d13', sequence(tagged(0x01, Buffer.from([0xff]))), true)
const forHosts = (names: readonly string[], address: readonly number[]) =>
  extension('551d11', sequence(...names.map((n) => tagged(0x82, Buffer.from(n))), tagged(0x87, Buffer.from(address))))

interface Wanted {
  readonly subject: string
  readonly extension: Buffer
  readonly fromDays?: number
  readonly untilDays?: number
}

const pem = (der: Buffer) =>
  `-----BEGIN CERTIFICATE-----\n${der
    .toString('base64')
    .replace(/.{64}/g, '$&\n')
    .trimEnd()}\n-----END CERTIFICATE-----\n`

function issue({ subject, extension: own, fromDays = -1, untilDays = 30 }: Wanted, issuer: Issuer | null): Identity {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const now = Date.now()
  const toSign = sequence(
    tagged(0xa0, tagged(0x02, Buffer.from([2]))),
    tagged(0x02, Buffer.from([1, ...Buffer.from(String(process.hrtime.bigint() % 1_000_000_000n))])),
    ECDSA_WITH_SHA256,
    named(issuer?.name ?? subject),
    sequence(time(now + fromDays * DAY_MS), time(now + untilDays * DAY_MS)),
    named(subject),
    publicKey.export({ type: 'spki', format: 'der' }),
    tagged(0xa3, sequence(own)),
  )
  const signature = tagged(0x03, Buffer.from([0]), sign('sha256', toSign, issuer?.key ?? privateKey))
  return {
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }) as string,
    cert: pem(sequence(toSign, ECDSA_WITH_SHA256, signature)),
  }
}

interface Issuer {
  readonly name: string
  readonly key: KeyObject
}

const AUTHORITY = 'the authority of the tests'

/** A root of its own; scripts/test.ts makes the one that this run trusts. */
export const newAuthority = (subject = AUTHORITY): Identity => issue({ subject, extension: CA }, null)

/** Set by scripts/test.ts, beside NODE_EXTRA_CA_CERTS, which makes every process of the run trust it. */
const trusted = (): Issuer => ({
  name: AUTHORITY,
  key: createPrivateKey(process.env.OUTLEDGER_TEST_AUTHORITY_KEY ?? ''),
})

/** For localhost and 127.0.0.1, and wrong in the way that its name says. */
export function certificate(kind: CertificateKind): Identity {
  const here = forHosts(['localhost'], [127, 0, 0, 1])
  const subject = `a peer, ${kind}`
  switch (kind) {
    case 'valid':
      return issue({ subject, extension: here }, trusted())
    case 'expired':
      return issue({ subject, extension: here, fromDays: -60, untilDays: -1 }, trusted())
    case 'not-yet-valid':
      return issue({ subject, extension: here, fromDays: 1 }, trusted())
    case 'wrong-name':
      return issue({ subject, extension: forHosts(['clinic.example'], [192, 0, 2, 1]) }, trusted())
    case 'self-signed':
      return issue({ subject, extension: here }, null)
    case 'unknown-ca': {
      const name = 'another authority'
      const other = newAuthority(name)
      const leaf = issue({ subject, extension: here }, { name, key: createPrivateKey(other.key) })
      return { key: leaf.key, cert: leaf.cert + other.cert }
    }
  }
}

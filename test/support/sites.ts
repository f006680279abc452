// Everything there is to dial for the table of rules: peers of every kind, ports and names where none is.
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { type FaultPeer, startFaultPeer } from './fault-peer.ts'
import { fullPort } from './full-port.ts'
import { resolveAs } from './resolver.ts'

/** Where a row goes: the URL of the endpoint. */
export type Place = (sites: Sites) => string

export type Sites = Awaited<ReturnType<typeof openSites>>

async function refusingPort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

export async function openSites() {
  resolveAs({
    'unknown.test': 'ENOTFOUND',
    'later.test': 'EAI_AGAIN',
    'slow.test': 'ETIMEOUT',
    'silent.test': null,
    'inside.test': ['10.0.0.7', '::1'],
  })
  const [http, https, closing, resetting, silent] = await Promise.all([
    startFaultPeer(),
    startFaultPeer({ tls: 'valid' }),
    startFaultPeer({ tls: 'valid' }),
    startFaultPeer({ tls: 'valid' }),
    startFaultPeer({ tls: 'valid' }),
  ])
  closing.accept('close')
  resetting.accept('reset-later')
  silent.accept('silence')
  const kinds = ['expired', 'not-yet-valid', 'wrong-name', 'self-signed', 'unknown-ca', 'old-protocol'] as const
  const misfits = Object.fromEntries(
    await Promise.all(kinds.map(async (tls) => [tls, await startFaultPeer({ tls })] as const)),
  ) as Record<(typeof kinds)[number], FaultPeer>
  return {
    ...{ http, https, closing, resetting, silent, misfits },
    refusing: await refusingPort(),
    full: await fullPort(),
  }
}

/** How often any of them has seen this attempt of this delivery. */
export const seenBy = ({ http, https, closing, resetting, silent, misfits }: Sites, key: string, number: number) =>
  [http, https, closing, resetting, silent, ...Object.values(misfits)]
    .flatMap((peer) => peer.of(key))
    .filter((one) => one.number === number).length

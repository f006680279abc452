// Connects only to addresses the endpoint may reach, judged on the address that is dialled, and tells how far it came.
import { isIP, type Socket } from 'node:net'
import type { buildConnector } from 'undici'
import type { Phase } from './core/classify.ts'
import { isBlockedAddress } from './core/target.ts'
import { readOverContinue } from './interim.ts'
import { blockedAddress } from './public-lookup.ts'

/** The request that a connection is made for. */
export interface Waiting {
  enter(phase: Phase): void
}

const ofDialling = new WeakSet<Error>()

/** Did it end a connection that was being made, rather than one that was kept? */
export const failedToDial = (error: Error): boolean => ofDialling.has(error)

/**
 * @param connect dials, and calls back when the connection can be written to
 * @param waiting asked at each call, in the turn in which the connection is wanted
 */
export function connector(
  connect: buildConnector.connector,
  waiting: () => Waiting | undefined,
  { allowPrivate, onSocket }: { readonly allowPrivate: boolean; readonly onSocket: (socket: Socket) => void },
): buildConnector.connector {
  return (options, callback) => {
    // For an IP literal no lookup is made.
    const host = options.hostname.replace(/^\[|\]$/g, '')
    const literal = isIP(host) !== 0
    if (!allowPrivate && literal && isBlockedAddress(host)) {
      queueMicrotask(() => callback(blockedAddress(), null))
      return
    }
    const request = waiting()
    request?.enter(literal ? 'connect' : 'dns')
    const socket = connect(options, (...made) => {
      if (made[0] !== null) ofDialling.add(made[0])
      callback(...made)
    }) as unknown as Socket
    onSocket(socket)
    readOverContinue(socket)
    socket
      .once('lookup', (error: Error | null) => {
        if (error === null) request?.enter('connect')
      })
      .once('connect', () => request?.enter('tls'))
    return socket
  }
}

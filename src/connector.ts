// Connects only to addresses the endpoint may reach, judged on the address that is dialled, and tells how far it came.
import { isIP, type Socket } from 'node:net'
import type { Phase } from './core/classify.ts'
import { isBlockedAddress } from './core/target.ts'
import { blockedAddress } from './public-lookup.ts'

/** The request that a connection is made for. */
export interface Waiting {
  enter(phase: Phase): void
}

interface To {
  readonly hostname: string
}

/**
 * @param connect dials, and calls back when the connection can be written to
 * @param waiting asked at each call, in the turn in which the connection is wanted
 */
export function connector<C extends (error: Error, socket: null) => void, O extends To, R>(
  connect: (options: O, callback: C) => R,
  waiting: () => Waiting | undefined,
  { allowPrivate, onSocket }: { readonly allowPrivate: boolean; readonly onSocket: (socket: Socket) => void },
): (options: O, callback: C) => R | undefined {
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
    const dialled = connect(options, callback)
    const socket = dialled as Socket
    onSocket(socket)
    socket
      .once('lookup', (error: Error | null) => {
        if (error === null) request?.enter('connect')
      })
      .once('connect', () => request?.enter('tls'))
    return dialled
  }
}

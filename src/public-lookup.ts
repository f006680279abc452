// Name resolution that gives only addresses an endpoint may reach; the one it gives is the one that is dialled.
import { type LookupAddress, type LookupOptions, lookup } from 'node:dns'
import type { LookupFunction } from 'node:net'
import { isBlockedAddress } from './core/target.ts'

/** Not a failure of the resolver: no further try will help. */
export const blockedAddress = (): Error =>
  Object.assign(new Error('the address is not public'), { code: 'blocked_address' })

export const publicLookup: LookupFunction = (hostname, options, callback) => {
  lookup(hostname, { ...(options as LookupOptions), all: true }, (error, addresses: LookupAddress[]) => {
    const open = error ? [] : addresses.filter(({ address }) => !isBlockedAddress(address))
    const [first] = open
    if (error) callback(error, '', 0)
    else if (first === undefined) callback(blockedAddress(), '', 0)
    else if (options.all) callback(null, open)
    else callback(null, first.address, first.family)
  })
}

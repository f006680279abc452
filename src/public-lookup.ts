// Addresses for a connection: any, or only those that an endpoint may reach. The one that is given is the one that is dialled.
import type { LookupAddress } from 'node:dns'
import type { LookupFunction } from 'node:net'
import { isBlockedAddress } from './core/target.ts'
import { Names } from './names.ts'

/** Not a failure of the resolver: no further try will help. */
export const blockedAddress = (): Error =>
  Object.assign(new Error('the address is not public'), { code: 'blocked_address' })

/** One for all: the threads are the process's. */
const names = new Names()

const lookupOf =
  (isOpen: (address: LookupAddress) => boolean): LookupFunction =>
  (hostname, options, callback) => {
    names.lookup(hostname, options, (error, addresses) => {
      const open = error ? [] : addresses.filter(isOpen)
      const [first] = open
      if (error) callback(error, '', 0)
      else if (first === undefined) callback(blockedAddress(), '', 0)
      else if (options.all) callback(null, open)
      else callback(null, first.address, first.family)
    })
  }

export const publicLookup: LookupFunction = lookupOf(({ address }) => !isBlockedAddress(address))
export const anyLookup: LookupFunction = lookupOf(() => true)

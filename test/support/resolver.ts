// Names that mean what a test says, for everything in this process that asks the system's resolver.
import dns from 'node:dns'
import { syncBuiltinESMExports } from 'node:module'

type Addresses = readonly string[]

/** Addresses, the code of an error, or null for no answer ever; a function is asked anew for each lookup, and may take its time. */
type Meaning = Addresses | string | null | (() => Addresses | string | null | Promise<Addresses>)

type Callback = (error: NodeJS.ErrnoException | null, address: unknown, family?: number) => void

const real = dns.lookup

/** From now on these names are resolved like this, all others as ever. Returns how often each name has been looked up. */
export function resolveAs(names: Readonly<Record<string, Meaning>>): ReadonlyMap<string, number> {
  const asked = new Map<string, number>()
  const lookup = (name: string, options: dns.LookupOptions, callback: Callback) => {
    const given = names[name]
    if (given === undefined) return real(name, options as dns.LookupAllOptions, callback as never)
    asked.set(name, (asked.get(name) ?? 0) + 1)
    const meaning = typeof given === 'function' ? given() : given
    if (meaning === null) return
    if (typeof meaning === 'string') {
      const error = Object.assign(new Error(meaning), { code: meaning, syscall: 'getaddrinfo' })
      setImmediate(callback, error, undefined)
      return
    }
    if (meaning instanceof Promise) return void meaning.then((addresses) => tell(addresses, options, callback))
    tell(meaning, options, callback)
  }
  const tell = (addresses: Addresses, options: dns.LookupOptions, callback: Callback) => {
    const all = addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }))
    if (options.all) setImmediate(callback, null, all)
    else setImmediate(callback, null, all[0]?.address, all[0]?.family)
  }
  dns.lookup = lookup as unknown as typeof dns.lookup
  syncBuiltinESMExports()
  return asked
}

// outledger work --load-payload: a function of the app's, out of a module of the app's.
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { OutledgerError } from '../errors.ts'
import { codeOf } from '../events.ts'
import type { LoadPayload } from '../payload.ts'

/** @throws OutledgerError `invalid_option` where the module cannot be loaded or has no such function */
export async function loaderAt(path: string): Promise<LoadPayload> {
  const wrong = (problem: string) => new OutledgerError('invalid_option', `option loadPayload is "${path}"; ${problem}`)
  const module = await import(pathToFileURL(resolve(path)).href).catch((error: unknown) => {
    const said = error instanceof Error ? error.message.split('\n')[0] : codeOf(error)
    throw wrong(`importing it failed: ${said}`)
  })
  const found: unknown = module.loadPayload ?? module.default
  if (typeof found !== 'function') throw wrong('it exports neither "loadPayload" nor a default that is a function')
  return found as LoadPayload
}

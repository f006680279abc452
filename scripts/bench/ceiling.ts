// What the machine gives at most: the same requests in a bare loop over undici, no database, no signature.
import { type Dispatcher, Pool } from 'undici'

export interface CeilingRequest {
  readonly url: URL
  readonly headers: string[]
  readonly body: Buffer
}

/** Requests per second of `count` requests, `inFlight` at once. */
export async function ceilingRate(
  { url, headers, body }: CeilingRequest,
  count: number,
  inFlight: number,
): Promise<number> {
  const pool = new Pool(url.origin, { connections: inFlight, pipelining: 1 })
  const options = { path: url.pathname, method: 'POST', headers, body } as const
  let left = count
  const startedAt = performance.now()
  await new Promise<void>((resolve, reject) => {
    let open = 0
    const next = () => {
      if (left === 0) {
        if (open === 0) resolve()
        return
      }
      left--
      open++
      pool.dispatch(options, handler)
    }
    // One handler for all requests and no promise for each: nothing here but the client.
    const handler: Dispatcher.DispatchHandler = {
      onConnect() {},
      onHeaders: () => true,
      onData: () => true,
      onComplete() {
        open--
        next()
      },
      onError: reject,
    }
    for (let i = 0; i < inFlight; i++) next()
  })
  const seconds = (performance.now() - startedAt) / 1000
  await pool.destroy()
  return count / seconds
}

// What the machine gives at most: the same requests in a bare loop over undici, no database, no signature.
import { type Dispatcher, Pool } from 'undici'
import { type Measured, Meter, type Pids } from './cpu.ts'

const IN_FLIGHT = 64
const WARM_UP_MS = 2_000

interface CeilingRequest {
  readonly url: URL
  readonly headers: string[]
  readonly body: Buffer
}

/** Two seconds of warm-up, then `count` requests. */
export async function ceiling({
  url,
  payload,
  count,
  pids,
}: {
  url: URL
  payload: string
  count: number
  pids: Pids
}): Promise<Measured> {
  const request = { url, headers: HEADERS, body: Buffer.from(payload) }
  const guess = await rateOf(request, 10_000, IN_FLIGHT)
  await rateOf(request, Math.ceil((guess * WARM_UP_MS) / 1000), IN_FLIGHT)
  const meter = new Meter({ client: process.pid, receiver: pids.receiver })
  return meter.measured(count, await rateOf(request, count, IN_FLIGHT))
}

/** Those of a delivery, with a signature that nobody computed. */
const HEADERS = Object.entries({
  'content-type': 'application/json',
  'accept-encoding': 'identity',
  'user-agent': 'outledger/0.1.0',
  'idempotency-key': 'bench-100000',
  'webhook-id': 'bench-100000',
  'webhook-timestamp': '1700000000',
  'webhook-signature': `v1,${Buffer.alloc(32).toString('base64')}`,
  'outledger-type': 'payment.captured',
  'outledger-attempt': '1',
}).flat()

/** Requests per second of `count` requests, `inFlight` at once. */
async function rateOf({ url, headers, body }: CeilingRequest, count: number, inFlight: number): Promise<number> {
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

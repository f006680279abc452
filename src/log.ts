// Log lines, from events alone: at most one an attempt that ended well or for good, and of trouble at most one a second for each cause.
import type { Logger } from 'pino'
import { remedyFor } from './database-trouble.ts'
import type { Poller } from './poller.ts'

const INTERVAL_MS = 1_000

/** Reasons for which a person has to do something, as `problem` says. */
const WAITING: Readonly<Record<string, string>> = {
  secret_unavailable: 'deliveries wait for a secret',
  payload_unavailable: 'deliveries wait for their payload',
}

/** Write a poller's events to a pino logger: delivered at debug, retries at info, dead at error. */
export function logTo(poller: Poller, logger: Logger): void {
  const seldom = throttle()
  poller.on('started', (e) => logger.info(e, 'poller started'))
  poller.on('stopped', (e) => logger.info(e, 'poller stopped'))
  poller.on('attempt', (event) => {
    // Nothing is copied for a line that is not written: this is the hot path.
    if (event.verdict === 'delivered' && !logger.isLevelEnabled('debug')) return
    const { retryAfterCapped, ...e } = event
    if (e.verdict === 'delivered') logger.debug(e, 'delivered')
    else if (e.probe) logger.debug(e, 'probe failed')
    else if (e.verdict === 'retry')
      seldom(`${e.endpoint} ${e.reason?.replace(/:.*/, '')}`, (missed) =>
        logger.info({ ...e, missed }, 'attempt failed, will be retried'),
      )
    // What does not pass by itself, and that somebody has to repair over there.
    const { endpoint, reason } = e
    if (reason?.startsWith('tls_'))
      seldom(`tls ${endpoint}`, (missed) => logger.warn({ endpoint, reason, missed }, 'TLS to an endpoint fails'))
    if (retryAfterCapped)
      seldom(`capped ${endpoint}`, (missed) =>
        logger.warn({ endpoint, reason: 'retry_after_capped', missed }, 'a pause of more than 24 h was asked for'),
      )
  })
  poller.on('endpoint.stopped', (e) => {
    if (e.stop === 'paused') logger.error(e, 'endpoint paused: it rejects')
    else seldom(`${e.endpoint} ${e.stop}`, (missed) => logger.warn({ ...e, missed }, `endpoint ${e.stop}`))
  })
  poller.on('endpoint.opened', (e) => logger.info(e, 'endpoint works again'))
  poller.on('delivery.dead', (e) =>
    logger.error(e, e.verdict === 'block' ? 'delivery failed and blocks its ordering key' : 'delivery finally failed'),
  )
  poller.on('fenced', (e) => seldom('fenced', (missed) => logger.warn({ ...e, missed }, 'result came after its lease')))
  poller.on('released', (e) =>
    seldom(`${e.reason} ${e.endpoint}`, (missed) => {
      const [line, waiting] = [{ ...e, missed }, WAITING[e.reason]]
      if (waiting === undefined) logger.info(line, 'leases given back')
      else logger.warn(line, waiting)
    }),
  )
  poller.on('purged', (e) => logger.info(e, 'purged'))
  poller.on('swept', (e) => {
    if (e.promoted + e.overdueLanes > 0) logger.warn(e, 'swept')
  })
  poller.on('database.trouble', (e) =>
    seldom(e.code, (missed) => logger.warn({ ...e, missed, remedy: remedyFor(e.code) }, 'database trouble')),
  )
  poller.on('trouble', (e) => seldom(e.code, (missed) => logger.error({ ...e, missed }, 'trouble')))
}

type Seldom = (cause: string, write: (missed: number) => void) => void

/** Lets one line a second and cause through, and tells it how many it stands for. */
function throttle(): Seldom {
  const causes = new Map<string, { at: number; missed: number }>()
  return (cause, write) => {
    const now = performance.now()
    const last = causes.get(cause)
    if (last !== undefined && now - last.at < INTERVAL_MS) {
      last.missed++
      return
    }
    causes.set(cause, { at: now, missed: 0 })
    write(last?.missed ?? 0)
  }
}

// What a poller needs to send to an endpoint: its settings, its secrets in memory, its fixed headers. Reloaded when it changes.
import { urlProblem } from './core/target.ts'
import { codeOf } from './events.ts'
import { type ResolveSecret, signingSecret } from './secrets.ts'
import type { Claim } from './sql/claim.ts'
import type { EndpointRow } from './sql/endpoint.ts'
import { VERSION } from './version.ts'

export interface Target {
  readonly endpoint: EndpointRow
  readonly url: URL
  readonly secrets: readonly Buffer[]
  /** Names and values in turn; the same for every delivery. */
  readonly headers: readonly string[]
}

/** `secret_unavailable` is our own fault and passes; `bad_config` ends the delivery. */
export interface BrokenTarget {
  readonly endpoint: EndpointRow
  readonly problem: 'secret_unavailable' | 'bad_config'
}

/** How long a claim waits for secrets, and after how long one that never comes is asked for again. */
const RESOLVE_WAIT_MS = 250
const RESOLVE_LIMIT_MS = 10_000

export class Targets {
  readonly #known = new Map<number, Target | BrokenTarget>()
  readonly #resolving = new Map<number, Promise<void>>()
  readonly #resolve: ResolveSecret

  constructor(resolve: ResolveSecret) {
    this.#resolve = resolve
  }

  /**
   * Load what these claims need and is not known in that version yet. A secret store that does not answer is waited for
   * only briefly: the endpoint counts as broken until it does, and costs the others nothing.
   */
  async load(claims: readonly Claim[], read: (ids: readonly number[]) => Promise<EndpointRow[]>): Promise<void> {
    const missing = new Set<number>()
    for (const { endpoint_id: id, endpoint_version: version } of claims) {
      const known = this.#known.get(id)
      // A broken one is looked at again with every claim: a secret may appear without a restart.
      if (known === undefined || known.endpoint.version !== version || 'problem' in known) missing.add(id)
    }
    if (missing.size === 0) return
    const rows = await read([...missing])
    let timer: NodeJS.Timeout | undefined
    const late = new Promise((resolve) => {
      timer = setTimeout(resolve, RESOLVE_WAIT_MS)
    })
    await Promise.race([Promise.all(rows.map((row) => this.#refresh(row))), late])
    clearTimeout(timer)
  }

  /** Until the secrets have come the endpoint is broken; one resolution at a time, given up after a while. */
  #refresh(row: EndpointRow): Promise<void> {
    const known = this.#known.get(row.id)
    if (known === undefined || known.endpoint.version !== row.version) {
      this.#known.set(row.id, { endpoint: row, problem: 'secret_unavailable' })
      this.#resolving.delete(row.id)
    }
    const running = this.#resolving.get(row.id)
    if (running !== undefined) return running
    const giveUp = setTimeout(() => this.#resolving.delete(row.id), RESOLVE_LIMIT_MS)
    giveUp.unref()
    const resolving = this.#target(row).then((target) => {
      clearTimeout(giveUp)
      // Another version or another try may have come in between.
      if (this.#resolving.get(row.id) !== resolving) return
      this.#resolving.delete(row.id)
      this.#known.set(row.id, target)
    })
    this.#resolving.set(row.id, resolving)
    return resolving
  }

  get(endpointId: number): Target | BrokenTarget {
    const known = this.#known.get(endpointId)
    if (known === undefined) throw new Error(`endpoint ${endpointId} was not loaded`)
    return known
  }

  async #target(endpoint: EndpointRow): Promise<Target | BrokenTarget> {
    if (urlProblem(endpoint.url, endpoint.allowInsecure) !== null) return { endpoint, problem: 'bad_config' }
    try {
      const secrets = [await signingSecret(endpoint.secret, this.#resolve)]
      const authorization = endpoint.authorization === null ? null : await this.#resolve(endpoint.authorization)
      const own = Object.entries(JSON.parse(endpoint.headers ?? '{}') as Record<string, string>).flat()
      const headers = [
        ...['content-type', 'application/json', 'accept-encoding', 'identity', 'user-agent', `outledger/${VERSION}`],
        ...(authorization === null ? [] : ['authorization', authorization]),
        ...own,
      ]
      return { endpoint, url: new URL(endpoint.url), secrets, headers }
    } catch (error) {
      return { endpoint, problem: codeOf(error) === 'invalid_endpoint' ? 'bad_config' : 'secret_unavailable' }
    }
  }
}

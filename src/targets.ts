// What a poller needs to send to an endpoint: its settings, its secrets in memory, its fixed headers. Reloaded when it changes.
import { urlProblem } from './core/target.ts'
import { codeOf } from './events.ts'
import { type ResolveSecret, signingSecret } from './secrets.ts'
import type { Claim } from './sql/claim.ts'
import { type EndpointRow, endpointsById } from './sql/endpoint.ts'
import type { Executor } from './sql/executor.ts'
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

export class Targets {
  readonly #known = new Map<number, Target | BrokenTarget>()
  readonly #resolve: ResolveSecret

  constructor(resolve: ResolveSecret) {
    this.#resolve = resolve
  }

  /** Load what these claims need and is not known in that version yet. */
  async load(db: Executor, claims: readonly Claim[]): Promise<void> {
    const missing = new Set<number>()
    for (const { endpoint_id: id, endpoint_version: version } of claims) {
      const known = this.#known.get(id)
      // A broken one is looked at again with every claim: a secret may appear without a restart.
      if (known === undefined || known.endpoint.version !== version || 'problem' in known) missing.add(id)
    }
    if (missing.size === 0) return
    const rows = await endpointsById(db, [...missing])
    await Promise.all(rows.map(async (row) => this.#known.set(row.id, await this.#target(row))))
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

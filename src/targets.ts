// What a poller needs to send to an endpoint: its settings, its secrets in memory, its fixed headers. Reloaded when it changes.
import type { AnswerPolicy } from './core/classify.ts'
import { secretBytes } from './core/signature.ts'
import { urlProblem } from './core/target.ts'
import { OutledgerError } from './errors.ts'
import { codeOf } from './events.ts'
import { type ResolveSecret, signingSecret } from './secrets.ts'
import type { Claim } from './sql/claim.ts'
import type { EndpointRow, PreviousSecret } from './sql/endpoint.ts'
import { VERSION } from './version.ts'

export interface Target {
  readonly endpoint: EndpointRow
  readonly url: URL
  /** The current one. */
  readonly secret: Buffer
  /** Those that still sign beside it, until then on the database's clock. */
  readonly previous: readonly { readonly bytes: Buffer; readonly untilMs: number }[]
  /** Names and values in turn; the same for every delivery. */
  readonly headers: readonly string[]
  readonly policy: AnswerPolicy
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
      return await targetOf(endpoint, this.#resolve)
    } catch (error) {
      return { endpoint, problem: codeOf(error) === 'invalid_endpoint' ? 'bad_config' : 'secret_unavailable' }
    }
  }
}

/** @throws whatever the resolver does, or OutledgerError `secret_unresolvable`, `invalid_endpoint` */
export async function targetOf(endpoint: EndpointRow, resolve: ResolveSecret): Promise<Target> {
  const secret = await signingSecret(endpoint.secret, resolve)
  const previous = await Promise.all(endpoint.previousSecrets.map((one) => previousSecret(one, resolve)))
  const authorization = endpoint.authorization === null ? null : await resolve(endpoint.authorization)
  const own = Object.entries(JSON.parse(endpoint.headers ?? '{}') as Record<string, string>).flat()
  const headers = [
    ...['content-type', 'application/json', 'accept-encoding', 'identity', 'user-agent', `outledger/${VERSION}`],
    ...(authorization === null ? [] : ['authorization', authorization]),
    ...own,
  ]
  return { endpoint, url: new URL(endpoint.url), secret, previous, headers, policy: policyOf(endpoint) }
}

function policyOf({ statusPolicy, on409 }: EndpointRow): AnswerPolicy {
  const verdicts = Object.entries(JSON.parse(statusPolicy ?? '{}') as Record<string, 'retry' | 'dead'>)
  return { statusPolicy: new Map(verdicts.map(([status, verdict]) => [Number(status), verdict])), on409 }
}

/**
 * Without it, a receiver that has not changed over yet would answer 401, and that is final: so a previous secret that is
 * missing or malformed here is a fault of ours until its time is up.
 */
async function previousSecret({ secret, until }: PreviousSecret, resolve: ResolveSecret) {
  const bytes = secretBytes(await resolve(secret))
  if (bytes === null)
    throw new OutledgerError(
      'secret_unresolvable',
      `what ${JSON.stringify(secret)} names is no secret; it signs until ${until}`,
    )
  return { bytes, untilMs: Date.parse(until) }
}

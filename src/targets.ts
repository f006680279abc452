// What a poller needs to send to an endpoint: its settings, its secrets in memory, its fixed headers. Reloaded when it changes.
import type { AnswerPolicy } from './core/classify.ts'
import { shownReference } from './core/reference.ts'
import { SECRET_FORM, secretBytes } from './core/signature.ts'
import { urlProblem } from './core/target.ts'
import { OutledgerError } from './errors.ts'
import { codeOf } from './events.ts'
import { type ResolveSecret, secretValue, signingSecret, unresolvable } from './secrets.ts'
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
  /** In words, for the log: they name a reference, never a value. */
  readonly why: string
}

interface Known {
  readonly target: Target | BrokenTarget
  /** When its secrets were last asked for, on this process's monotonic clock. */
  askedAt: number
}

/** How long a claim waits for secrets. */
const RESOLVE_WAIT_MS = 250

/** After how long one that never comes is asked for again, doubled for each call that still hangs: each may hold a connection. */
const GIVEN_UP_MS = 10_000
const DOUBLINGS = 6

/** A value that was changed under the same reference is known so soon; meanwhile, and while the store is down, the old one serves. */
const KEPT_MS = 60_000

const DOUBTED = Number.NEGATIVE_INFINITY

export class Targets {
  readonly #known = new Map<number, Known>()
  readonly #resolving = new Map<number, Promise<void>>()
  /** By endpoint, calls that were given up and have not returned. */
  readonly #hanging = new Map<number, number>()
  readonly #resolve: ResolveSecret
  readonly #keptMs: number
  readonly #givenUpMs: number

  constructor(resolve: ResolveSecret, { keptMs = KEPT_MS, givenUpMs = GIVEN_UP_MS } = {}) {
    this.#resolve = resolve
    this.#keptMs = keptMs
    this.#givenUpMs = givenUpMs
  }

  /**
   * Load what these claims need and is not known in that version yet. A secret store that does not answer is waited for
   * only briefly: the endpoint counts as broken until it does, and costs the others nothing.
   */
  async load(claims: readonly Claim[], read: (ids: readonly number[]) => Promise<EndpointRow[]>): Promise<void> {
    const missing = new Set<number>()
    const now = performance.now()
    for (const { endpoint_id: id, endpoint_version: version } of claims) {
      const known = this.#known.get(id)
      // A broken one is looked at again with every claim: a secret may appear without a restart.
      if (known === undefined || isStale(known.target, version) || now - known.askedAt >= this.#keptMs) missing.add(id)
    }
    if (missing.size === 0) return
    const rows = await read([...missing])
    let timer: NodeJS.Timeout | undefined
    const late = new Promise((resolve) => {
      timer = setTimeout(resolve, RESOLVE_WAIT_MS)
    })
    await Promise.race([Promise.all(rows.map((row) => this.#refresh(row, now))), late])
    clearTimeout(timer)
  }

  /** Until the secrets have come the endpoint is broken; one resolution at a time, given up after a while. */
  #refresh(row: EndpointRow, now: number): Promise<void> {
    const known = this.#known.get(row.id)
    const usable = known !== undefined && !isStale(known.target, row.version)
    // One that only may have changed is not waited for.
    const waits = !usable || known.askedAt === DOUBTED
    if (known === undefined || known.target.endpoint.version !== row.version) {
      const references = [
        row.secret,
        ...row.previousSecrets.map(({ secret }) => secret),
        row.authorization ?? [],
      ].flat()
      const why = `the secret store has not answered yet for ${references.map(shownReference).join(', ')}`
      this.#known.set(row.id, { target: { endpoint: row, problem: 'secret_unavailable', why }, askedAt: now })
      this.#resolving.delete(row.id)
    } else known.askedAt = now
    const running = this.#resolving.get(row.id)
    if (running !== undefined) return waits ? running : Promise.resolve()
    const hanging = this.#hanging.get(row.id) ?? 0
    let givenUp = false
    const giveUp = setTimeout(
      () => {
        givenUp = true
        this.#hanging.set(row.id, (this.#hanging.get(row.id) ?? 0) + 1)
        if (this.#resolving.get(row.id) === resolving) this.#resolving.delete(row.id)
      },
      this.#givenUpMs * 2 ** Math.min(hanging, DOUBLINGS),
    )
    giveUp.unref()
    const resolving = this.#target(row).then((target) => {
      clearTimeout(giveUp)
      if (givenUp) this.#hanging.set(row.id, (this.#hanging.get(row.id) ?? 1) - 1)
      // Another version or another try may have come in between.
      if (this.#resolving.get(row.id) !== resolving) return
      this.#resolving.delete(row.id)
      if (!usable || !('problem' in target)) this.#known.set(row.id, { target, askedAt: now })
    })
    this.#resolving.set(row.id, resolving)
    return waits ? resolving : Promise.resolve()
  }

  /** The receiver does not take our word: ask the store with the next claim. */
  doubt(endpointId: number): void {
    const known = this.#known.get(endpointId)
    if (known !== undefined) known.askedAt = DOUBTED
  }

  get(endpointId: number): Target | BrokenTarget {
    const known = this.#known.get(endpointId)
    if (known === undefined) throw new Error(`endpoint ${endpointId} was not loaded`)
    return known.target
  }

  /** The same, where it may never have been loaded. */
  find(endpointId: number): Target | BrokenTarget | undefined {
    return this.#known.get(endpointId)?.target
  }

  async #target(endpoint: EndpointRow): Promise<Target | BrokenTarget> {
    const url = urlProblem(endpoint.url, endpoint.allowInsecure)
    if (url !== null) return { endpoint, problem: 'bad_config', why: `url of endpoint ${endpoint.name} ${url}` }
    try {
      return await targetOf(endpoint, this.#resolve)
    } catch (error) {
      const problem = codeOf(error) === 'invalid_endpoint' ? 'bad_config' : 'secret_unavailable'
      return { endpoint, problem, why: error instanceof OutledgerError ? error.message : codeOf(error) }
    }
  }
}

/** To be looked at anew before it is used. */
const isStale = (target: Target | BrokenTarget, version: number): boolean =>
  target.endpoint.version !== version || 'problem' in target

/** @throws OutledgerError `secret_unresolvable`, `invalid_endpoint` */
export async function targetOf(endpoint: EndpointRow, resolve: ResolveSecret): Promise<Target> {
  const secret = await signingSecret(endpoint.secret, resolve)
  const previous = await Promise.all(endpoint.previousSecrets.map((one) => previousSecret(one, resolve)))
  const authorization = endpoint.authorization === null ? null : await secretValue(endpoint.authorization, resolve)
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
  const bytes = secretBytes(await secretValue(secret, resolve))
  if (bytes === null) throw unresolvable(secret, `it must be ${SECRET_FORM}, and signs until ${until}`)
  return { bytes, untilMs: Date.parse(until) }
}

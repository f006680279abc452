// Every figure of the demo, read from the tables of the app, the outbox and the receiver; none is counted in a process.
import postgres from 'postgres'

export interface Progress {
  readonly committed: number
  readonly delivered: number
  readonly open: number
  readonly effects: number
}

export interface Figures {
  /** Business rows. */
  readonly committed: number
  /** Announced on another connection, without a business row. */
  readonly rolled_back: number
  /** Rows the receiver wrote. */
  readonly effects: number
  /** Business rows whose key has no effect. */
  readonly lost: number
  /** Keys with an effect that no business row has. */
  readonly phantoms: number
  /** Attempts after the first. */
  readonly retried: number
  /** Attempts of which nobody knows whether they were applied. */
  readonly unknown: number
  /** Of these, attempts whose poller died. */
  readonly worker_lost: number
  /** Repetitions that the receiver recognised by their key. */
  readonly duplicates_absorbed: number
  readonly dead: number
  /** Deliveries that have not ended. */
  readonly open: number
}

export interface Attempt {
  readonly number: number
  readonly outcome: string
  readonly reason: string | null
  readonly took_ms: number
  readonly poller: string
}

export class Ledgers {
  readonly #app: postgres.Sql
  readonly #receiver: postgres.Sql

  constructor({ app, receiver }: { app: string; receiver: string }) {
    this.#app = postgres(app, { max: 2 })
    this.#receiver = postgres(receiver, { max: 1 })
  }

  async progress(): Promise<Progress> {
    const [[app], [receiver]] = await Promise.all([
      this.#app<Omit<Progress, 'effects'>[]>`
        select (select count(*) from shop.business)::int as committed,
          (select count(*) from outbox.deliveries where state = 'delivered')::int as delivered,
          (select count(*) from outbox.queue)::int as open`,
      this.#receiver<Pick<Progress, 'effects'>[]>`select count(*)::int as effects from effect`,
    ])
    return { ...app!, ...receiver! }
  }

  /** Deliveries that this poller has under a live lease. */
  async leasesOf(poller: string): Promise<number> {
    const [row] = await this.#app<{ leases: number }[]>`
      select count(*)::int as leases from outbox.queue
      where leased_by = ${poller} and token is not null and next_attempt_at > clock_timestamp()`
    return row!.leases
  }

  attemptsOf(key: string): Promise<Attempt[]> {
    return this.#app<Attempt[]>`
      select number, outcome, reason, took_ms::int, poller from outbox.attempts where key = ${key} order by number`
  }

  async figures(): Promise<Figures> {
    const [app] = await this.#app<Omit<Figures, 'effects' | 'lost' | 'phantoms' | 'duplicates_absorbed'>[]>`
      select (select count(*) from shop.business)::int as committed,
        (select count(*) from shop.intent i
          where not exists (select from shop.business b where b.key = i.key))::int as rolled_back,
        (select count(*) from outbox.attempts where number > 1)::int as retried,
        (select count(*) from outbox.attempts where outcome = 'unknown')::int as unknown,
        (select count(*) from outbox.attempts where reason = 'worker_lost')::int as worker_lost,
        (select count(*) from outbox.dead)::int as dead,
        (select count(*) from outbox.deliveries where ended_at is null)::int as open`
    const [receiver] = await this.#receiver<Pick<Figures, 'effects' | 'duplicates_absorbed'>[]>`
      select (select count(*) from effect)::int as effects, (select count(*) from duplicate)::int as duplicates_absorbed`
    const committed = await keysOf(this.#app`select key from shop.business`)
    const effects = await keysOf(this.#receiver`select distinct key from effect`)
    const lost = [...committed].filter((key) => !effects.has(key)).length
    const phantoms = [...effects].filter((key) => !committed.has(key)).length
    const { committed: rows, rolled_back, ...outbox } = app!
    const { effects: written, duplicates_absorbed } = receiver!
    return { committed: rows, rolled_back, effects: written, lost, phantoms, ...outbox, duplicates_absorbed }
  }

  async close(): Promise<void> {
    await Promise.all([this.#app.end({ timeout: 1 }), this.#receiver.end({ timeout: 1 })])
  }
}

async function keysOf(query: PromiseLike<postgres.Row[]>): Promise<Set<string>> {
  return new Set((await query).map((row) => row.key as string))
}

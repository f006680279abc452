// What Prisma generates for an app with payments, as far as the block of README.md uses it, over the shape of its client.
import pg from 'pg'
import { prismaShape } from '../clients/prisma-shape.ts'

export class PrismaPg {
  readonly pool: pg.Pool

  constructor({ connectionString }: { connectionString: string | undefined }) {
    this.pool = new pg.Pool({ connectionString })
  }
}

interface Payment {
  readonly id: number
  readonly cents: number
}

interface Transaction {
  $queryRawUnsafe(text: string, ...values: unknown[]): Promise<unknown>
  readonly payment: { create(given: { data: Payment }): Promise<unknown> }
}

export class PrismaClient {
  readonly #pool: pg.Pool

  constructor({ adapter }: { adapter: PrismaPg }) {
    this.#pool = adapter.pool
  }

  $connect(): void {}

  $transaction<T>(work: (tx: Transaction) => Promise<T>): Promise<T> {
    return prismaShape(this.#pool).$transaction((tx) => {
      const create = ({ data }: { data: Payment }) =>
        tx.$queryRawUnsafe('insert into payment (id, cents) values ($1, $2)', data.id, data.cents)
      const payment = { create }
      return work(new Proxy(tx, { get: (of, name) => (name === 'payment' ? payment : Reflect.get(of, name)) }) as never)
    })
  }

  $disconnect(): Promise<void> {
    return this.#pool.end()
  }
}

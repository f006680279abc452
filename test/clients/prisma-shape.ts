// What Prisma's client looks like to us, over node-postgres: seen on Prisma 7.10, so that its contract is tested where
// the real one (see prisma.test.ts) is not installed.
import type pg from 'pg'

class KnownRequestError extends Error {
  override readonly name = 'PrismaClientKnownRequestError'
  readonly code: string
  readonly meta: object

  constructor(code: string, what: string, meta: object) {
    super(`\nInvalid \`prisma.$queryRawUnsafe()\` invocation:\n\n\n${what}`)
    this.code = code
    this.meta = meta
  }
}

interface PgError extends Error {
  readonly code: string
  readonly severity: string
  readonly column?: string
}

const wrapped = ({ code, message, severity, column }: PgError) =>
  new KnownRequestError('P2010', `Raw query failed. Code: \`${code}\`. Message: \`${message}\``, {
    driverAdapterError: {
      name: 'DriverAdapterError',
      cause: { originalCode: code, originalMessage: message, kind: 'postgres', code, severity, message, column },
    },
  })

const ENDED =
  'Transaction API error: Transaction already closed: A query cannot be executed on a committed transaction.'

type Work<T> = (tx: Shape) => Promise<T>

interface Shape {
  $queryRawUnsafe(text: string, ...values: unknown[]): Promise<unknown>
  $transaction<T>(work: Work<T>): Promise<T>
}

interface Root extends Shape {
  $connect(): Promise<void>
  $transaction<T>(work: Work<T>, isolation?: string): Promise<T>
}

/** Like Prisma's, a proxy that throws when asked whether it has `$on`. */
const guarded = <S extends object>(shape: S): S =>
  new Proxy(shape, {
    has: (target, name) => {
      if (name === '$on') throw new TypeError("'has' on proxy: trap returned falsish for property '$on'")
      return Reflect.has(target, name)
    },
  })

export function prismaShape(pool: pg.Pool): Root {
  const shapeOf = (on: pg.PoolClient, state = { ended: false }): Shape =>
    guarded({
      async $queryRawUnsafe(text, ...values) {
        if (state.ended) throw new KnownRequestError('P2028', ENDED, {})
        const { rows } = await on.query(text, values).catch((error) => {
          throw wrapped(error)
        })
        return rows
      },
      async $transaction(work) {
        await on.query('savepoint nested')
        try {
          const result = await work(shapeOf(on, state))
          await on.query('release savepoint nested')
          return result
        } catch (error) {
          await on.query('rollback to savepoint nested')
          throw error
        }
      },
    })
  return guarded({
    async $connect() {},
    $queryRawUnsafe: async (text, ...values) => (await pool.query(text, values)).rows,
    async $transaction(work, isolation = 'read committed') {
      const on = await pool.connect()
      const state = { ended: false }
      await on.query(`begin isolation level ${isolation}`)
      let end = 'rollback'
      try {
        const result = await work(shapeOf(on, state))
        end = 'commit'
        return result
      } finally {
        await on.query(end)
        state.ended = true
        on.release()
      }
    },
  })
}

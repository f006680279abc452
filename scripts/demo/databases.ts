// Two databases, the app's and the receiver's, on an embedded server or on that of DATABASE_URL.
import { randomBytes } from 'node:crypto'
import postgres from 'postgres'
import { codeOf } from '../../src/events.ts'
import { type EmbeddedPostgres, startPostgres } from '../embedded-postgres.ts'

export interface Databases {
  readonly app: string
  readonly receiver: string
  /** For people: which server this is. */
  readonly server: string
  /** Command that takes away what `--keep` left. */
  readonly removal: string
  /** Drop both, and stop the server if it is ours. */
  end(): Promise<void>
}

/** Create both. `outlive`: an embedded server goes on when this process has ended. */
export async function createDatabases(given: string | null, { outlive }: { outlive: boolean }): Promise<Databases> {
  if (given !== null) return onServer(given)
  const embedded = await startPostgres({}, { outlive }).catch((error) => {
    const [first] = String(error.message).split('\n')
    throw new Error(`${first}; set DATABASE_URL to use a server of yours`)
  })
  return onEmbedded(embedded).catch(async (error) => {
    await embedded.stop()
    throw error
  })
}

async function onEmbedded(embedded: EmbeddedPostgres): Promise<Databases> {
  const names = { app: 'shop', receiver: 'receiver' }
  const version = await create(embedded.url, names)
  return {
    app: urlOf(embedded.url, names.app),
    receiver: urlOf(embedded.url, names.receiver),
    server: `PostgreSQL ${version}, embedded, started for this demo`,
    removal: `kill -INT ${embedded.pid} && sleep 1 && rm -rf ${embedded.folder}`,
    end: () => embedded.stop(),
  }
}

async function onServer(server: string): Promise<Databases> {
  const prefix = `outledger_demo_${randomBytes(4).toString('hex')}`
  const names = { app: `${prefix}_shop`, receiver: `${prefix}_receiver` }
  const drops = Object.values(names).map((name) => `drop database if exists ${name} with (force)`)
  const end = () =>
    withAdmin(server, async (admin) => {
      for (const drop of drops) await admin.unsafe(drop)
    })
  const version = await create(server, names).catch(async (error) => {
    await end().catch(() => {})
    throw refusal(error)
  })
  return {
    app: urlOf(server, names.app),
    receiver: urlOf(server, names.receiver),
    server: `PostgreSQL ${version} of DATABASE_URL; nothing there is touched but\n${prefix}_shop and ${prefix}_receiver, made for this demo`,
    removal: `psql "$DATABASE_URL" ${drops.map((drop) => `-c '${drop}'`).join(' ')}`,
    end,
  }
}

/** @returns the server's version */
function create(server: string, names: Record<string, string>): Promise<string> {
  return withAdmin(server, async (admin) => {
    for (const name of Object.values(names))
      await admin.unsafe(`create database ${name} template template0 encoding 'UTF8'`)
    const [row] = await admin`show server_version`
    return String(row?.server_version).split(' ')[0] as string
  })
}

async function withAdmin<T>(server: string, work: (admin: postgres.Sql) => Promise<T>): Promise<T> {
  const admin = postgres(server, { max: 1, connect_timeout: 5, onnotice: () => {} })
  try {
    return await work(admin)
  } finally {
    await admin.end({ timeout: 1 })
  }
}

function refusal(error: unknown): Error {
  const code = codeOf(error)
  if (code === '42501')
    return new Error('the role of DATABASE_URL may not create databases; give it CREATEDB, or unset DATABASE_URL')
  return new Error(
    `no use of the server of DATABASE_URL (${code}); check the URL and that it is up, or unset it for an embedded one`,
  )
}

const urlOf = (server: string, database: string): string =>
  Object.assign(new URL(server), { pathname: `/${database}` }).href

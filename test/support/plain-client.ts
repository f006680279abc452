// A client that knows nothing of us, as a database's administrators use: the whole text in one simple query.
import pg from 'pg'

export async function execute(db: { readonly url: string }, text: string): Promise<void> {
  const client = new pg.Client(db.url)
  await client.connect()
  try {
    await client.query(text)
  } finally {
    await client.end()
  }
}

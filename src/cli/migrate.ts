// outledger migrate
import { migrate as run } from '../migrate.ts'
import { databaseUrl, helpOf, parse } from './usage.ts'

export async function migrate(args: string[]): Promise<number> {
  const parsed = parse(args, {})
  if (parsed.help) {
    console.log(helpOf('outledger migrate [--json]: create or update the schema outbox; several may run at once', {}))
    return 0
  }
  const { applied } = await run(databaseUrl(parsed))
  console.log(
    parsed.json
      ? JSON.stringify({ applied })
      : applied === 0
        ? 'schema outbox is up to date'
        : `applied ${applied} migrations to schema outbox`,
  )
  return 0
}

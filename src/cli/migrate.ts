// outledger migrate
import { migrate as migrateTo } from '../migrate.ts'
import { answer, type Screen } from './print.ts'
import { databaseUrl, type Parsed } from './usage.ts'

export async function migrate(parsed: Parsed, screen: Screen): Promise<number> {
  const { applied } = await migrateTo(databaseUrl(parsed))
  answer(screen, parsed, { applied }, () =>
    applied === 0 ? 'schema outbox is up to date' : `applied ${applied} migrations to schema outbox`,
  )
  return 0
}

// outledger migrate
import { migrate as migrateTo, migrationSql } from '../migrate.ts'
import { grantsText } from '../sql/grants.ts'
import { answer, type Screen } from './print.ts'
import { databaseUrl, type Parsed, UsageError } from './usage.ts'

export async function migrate(parsed: Parsed, screen: Screen): Promise<number> {
  const { print, printGrants } = parsed.values
  if (print === true || printGrants === true) {
    if (parsed.json) throw new UsageError('--print and --print-grants print SQL; leave --json out')
    const url = parsed.databaseUrl === undefined ? undefined : databaseUrl(parsed)
    if (print === true) screen.print(await migrationSql(url))
    if (printGrants === true) screen.print(grantsText())
    return 0
  }
  const { applied } = await migrateTo(databaseUrl(parsed))
  answer(screen, parsed, { applied }, () =>
    applied === 0 ? 'schema outbox is up to date' : `applied ${applied} migrations to schema outbox`,
  )
  return 0
}

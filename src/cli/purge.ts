// outledger purge
import { purgeOnce } from '../maintenance.ts'
import { completeOptions } from '../options.ts'
import { withDatabase } from './database.ts'
import { answer, type Screen } from './print.ts'
import { databaseUrl, type Parsed } from './usage.ts'
import { PURGE_OPTIONS } from './verbs.ts'

export async function purge(parsed: Parsed, screen: Screen): Promise<number> {
  const { tombstoneDays } = completeOptions(PURGE_OPTIONS, parsed.values)
  const run = await withDatabase(databaseUrl(parsed), (db) => purgeOnce(db, { tombstoneDays }))
  answer(
    screen,
    parsed,
    run,
    () =>
      `${run.deliveries} deliveries and ${run.attempts} attempts deleted in ${run.batches} batches, ${run.tombstonesExpired} tombstones expired`,
  )
  return 0
}

// outledger purge
import { purgeOnce } from '../maintenance.ts'
import { completeOptions, POLLER_OPTIONS } from '../options.ts'
import { withDatabase } from './database.ts'
import { databaseUrl, helpOf, parse } from './usage.ts'

const OPTIONS = { tombstoneDays: POLLER_OPTIONS.tombstoneDays }

export async function purge(args: string[]): Promise<number> {
  const parsed = parse(args, OPTIONS)
  if (parsed.help) {
    console.log(
      helpOf(
        'outledger purge [options] [--json]: delete ended deliveries past their delete_after, one bounded run',
        OPTIONS,
      ),
    )
    return 0
  }
  const { databaseUrl: _, ...given } = parsed.values
  const { tombstoneDays } = completeOptions(OPTIONS, given)
  const run = await withDatabase(databaseUrl(parsed), (db) => purgeOnce(db, { tombstoneDays }))
  console.log(
    parsed.json
      ? JSON.stringify(run)
      : `${run.deliveries} deliveries and ${run.attempts} attempts deleted in ${run.batches} batches, ${run.tombstonesExpired} tombstones expired`,
  )
  return 0
}

// outledger sweep
import { sweepOnce } from '../maintenance.ts'
import { withDatabase } from './database.ts'
import { databaseUrl, helpOf, parse } from './usage.ts'

export async function sweep(args: string[]): Promise<number> {
  const parsed = parse(args, {})
  if (parsed.help) {
    console.log(helpOf('outledger sweep [--json]: look after what nobody looks after; pollers do it by themselves', {}))
    return 0
  }
  const swept = await withDatabase(databaseUrl(parsed), sweepOnce)
  const { promoted, forgotten, overdueLanes } = swept
  console.log(
    parsed.json
      ? JSON.stringify(swept)
      : `${promoted} parked deliveries made due, ${forgotten} dead pollers forgotten, ${overdueLanes} lanes overdue by more than a minute`,
  )
  return 0
}

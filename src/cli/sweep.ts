// outledger sweep
import { sweepOnce } from '../maintenance.ts'
import { withDatabase } from './database.ts'
import { answer, type Screen } from './print.ts'
import { databaseUrl, type Parsed } from './usage.ts'

export async function sweep(parsed: Parsed, screen: Screen): Promise<number> {
  const swept = await withDatabase(databaseUrl(parsed), sweepOnce)
  const { promoted, forgotten, overdueLanes } = swept
  answer(
    screen,
    parsed,
    swept,
    () =>
      `${promoted} parked deliveries made due, ${forgotten} dead pollers forgotten, ${overdueLanes} lanes overdue by more than a minute`,
  )
  return 0
}

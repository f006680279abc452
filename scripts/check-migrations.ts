// Fails when the tables in src/sql/schema*.ts and the migrations in drizzle/ have grown apart.
import { execFileSync } from 'node:child_process'

const output = execFileSync('drizzle-kit', ['generate', '--name', 'forgotten'], { encoding: 'utf8', stdio: 'pipe' })
if (!output.includes('No schema changes')) {
  console.error(
    'The schema has changed without a migration. drizzle-kit has written one now: look at it, edit it, name it.',
  )
  process.exit(1)
}

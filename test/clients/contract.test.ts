import { after } from 'node:test'
import postgres from 'postgres'
import { testDatabase } from '../support/database.ts'
import { addEndpoint } from '../support/ledger.ts'
import { messages } from './messages.ts'
import {
  drizzlePgSubject,
  drizzleSubject,
  kyselySubject,
  olderPgSubject,
  pgSubject,
  postgresSubject,
  prismaShapeSubject,
  runSubject,
  type Subject,
} from './subject.ts'
import { transactions } from './transactions.ts'

const subjects: Subject[] = []
// Before the database is: its end cuts off whoever is still connected, and node-postgres takes that for an error.
after(() => Promise.all(subjects.map(({ close }) => close())))
const db = await testDatabase()
await addEndpoint(db)
await addEndpoint(db, { name: 'ledger' })
await db.query('create table note (n text)')

subjects.push(
  postgresSubject(db.url, 'postgres.js'),
  postgresSubject(db.url, 'postgres.js that renames columns', { transform: postgres.toPascal as never }),
  postgresSubject(db.url, 'postgres.js that knows no null', {
    transform: { value: { from: (value: unknown) => (value === null ? undefined : value) } } as never,
  }),
  drizzleSubject(db.url),
  drizzlePgSubject(db.url),
  await pgSubject(db.url),
  await olderPgSubject(db.url),
  kyselySubject(db.url),
  prismaShapeSubject(db.url),
  runSubject(db.url),
)
for (const subject of subjects) {
  transactions(db, subject)
  messages(db, subject)
}

// Generates migrations from the schema; they are then edited by hand where drizzle cannot say what the database must do.
import { defineConfig } from 'drizzle-kit'

export default defineConfig({
  dialect: 'postgresql',
  schema: ['./src/sql/schema.ts', './src/sql/schema-records.ts'],
  out: './drizzle',
  schemaFilter: ['outbox'],
})

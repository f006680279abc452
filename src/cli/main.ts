#!/usr/bin/env node
// argv → verb → exit code: 0 done, 1 trouble, 2 usage. One line for every error.
import { didYouMean } from '../core/option.ts'
import { OutledgerError } from '../errors.ts'
import { codeOf } from '../events.ts'
import { isPassing } from '../loop.ts'
import { databaseTrouble } from '../migrate.ts'
import { VERSION } from '../version.ts'
import { endpoint } from './endpoint.ts'
import { migrate } from './migrate.ts'
import { purge } from './purge.ts'
import { sweep } from './sweep.ts'
import { UsageError } from './usage.ts'
import { work } from './work.ts'

const VERBS = { migrate, endpoint, work, sweep, purge }

const HELP = `outledger ${VERSION}: transactional outbox for Postgres

  outledger migrate                 create or update the schema outbox
  outledger endpoint put NAME …     create or change an endpoint
  outledger endpoint list           all endpoints
  outledger work                    deliver, until SIGTERM or SIGINT
  outledger sweep                   look after what nobody looks after, once
  outledger purge                   delete what is past its delete_after, one run

DATABASE_URL or --database-url names the database. "outledger VERB --help" tells more.
Exit codes: 0 done, 1 trouble, 2 wrong usage.`

/** Errors that a person's input causes; everything else is trouble. */
const USAGE_CODES = new Set(['invalid_option', 'invalid_endpoint', 'secret_unresolvable'])

async function run([verb, ...args]: string[]): Promise<number> {
  if (verb === undefined || verb === 'help' || verb === '--help' || verb === '-h') {
    console.log(HELP)
    return verb === undefined ? 2 : 0
  }
  if (verb === '--version' || verb === '-v') {
    console.log(VERSION)
    return 0
  }
  if (!Object.hasOwn(VERBS, verb)) {
    throw new UsageError(`unknown verb "${verb}"${didYouMean(verb, Object.keys(VERBS))}; see "outledger --help"`)
  }
  return VERBS[verb as keyof typeof VERBS](args)
}

try {
  process.exitCode = await run(process.argv.slice(2))
} catch (error) {
  const usage = error instanceof UsageError || (error instanceof OutledgerError && USAGE_CODES.has(error.code))
  // A driver's message may carry parameters: only its code is shown.
  const ours = error instanceof UsageError || error instanceof OutledgerError
  const text = ours ? error.message : isPassing(error) ? databaseTrouble(error).message : `failed with ${codeOf(error)}`
  console.error(`outledger: ${text}`)
  process.exitCode = usage ? 2 : 1
}

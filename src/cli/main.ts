#!/usr/bin/env node
// The program: the command line of this process, its two streams, its exit code.
import { screenOf } from './print.ts'
import { run } from './run.ts'
import { EXITS } from './verbs.ts'

// "outledger list | head": the reader has what it wanted.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(0)
  process.stderr.write(`outledger: the answer cannot be written (${error.code})\n`)
  process.exit(EXITS.trouble[0])
})
// Nobody reads the complaint; the exit code says it all the same.
process.stderr.on('error', () => {})
process.exitCode = await run(process.argv.slice(2), screenOf(process.stdout), screenOf(process.stderr))

// The command line in this process, its two streams caught: what a process would print, without starting one.
import type { Screen } from '../../src/cli/print.ts'
import { run } from '../../src/cli/run.ts'
import type { Ended } from './process.ts'

interface Caught extends Screen {
  readonly text: () => string
}

function caughtScreen(more: Partial<Screen> = {}): Caught {
  let text = ''
  return {
    ...{ tty: false, width: 80, colour: false, ...more },
    print: (line) => {
      text += `${line}\n`
    },
    text: () => text,
  }
}

/** `outledger ARGS` with this database in DATABASE_URL; `screen` says what stdout is. */
export async function caughtCli(
  url: string | null,
  args: readonly string[],
  screen: Partial<Screen> = {},
): Promise<Ended> {
  const [out, err] = [caughtScreen(screen), caughtScreen()]
  const before = process.env.DATABASE_URL
  if (url === null) delete process.env.DATABASE_URL
  else process.env.DATABASE_URL = url
  // The environment is read before the first pause, so that several may be under way at once.
  const running = run(args, out, err)
  if (before === undefined) delete process.env.DATABASE_URL
  else process.env.DATABASE_URL = before
  return { code: await running, signal: null, stdout: out.text(), stderr: err.text() }
}

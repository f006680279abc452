// What the database says when it does not work with us, as one line with the remedy.
import { OutledgerError } from './errors.ts'
import { codeOf } from './events.ts'

const REMEDIES: Readonly<Record<string, string>> = {
  '3D000': 'the database of the URL does not exist; create it',
  '28P01': 'user or password of the URL was refused',
  '28000': 'the user of the URL does not exist, or may not log in from here; check the roles and pg_hba.conf',
  '42704': 'the server does not know a parameter or a role of the URL',
  '42501':
    'the role of the URL lacks the rights; grant them ("outledger migrate --print-grants" prints roles that have them), or use the owner of the schema',
  '25006': 'the database is read-only; connect to the primary',
  '53300': 'the server has no connection left; raise max_connections or use fewer pollers',
  '55P03':
    'another session holds a lock that this statement waited for in vain; nothing was changed. Let its transaction end (pg_stat_activity shows it), then run this again',
}

/** What to do about a code of the database, where that is known. */
export const remedyFor = (code: string): string | undefined => REMEDIES[code]

/** SQLSTATEs of a server that answers and works: not the connection is at fault. */
const ANSWERED = /^(?!08|57P)[0-9A-Z]{5}$/

/** Trouble of the database as one line that says what to do. */
export function databaseTrouble(error: unknown): OutledgerError {
  if (error instanceof OutledgerError) return error
  const code = codeOf(error)
  if (ANSWERED.test(code)) {
    const remedy = remedyFor(code)
    return new OutledgerError('database_refused', remedy ? `${remedy} (${code})` : `failed with ${code}`, {
      cause: error,
    })
  }
  const message = `no connection to the database (${code}); check the URL, that the server is up, and that it speaks TLS where the URL asks for it`
  return new OutledgerError('database_unreachable', message, { cause: error })
}

// The words around the run: what is going to happen, what came out of it, and where to look further.
import type { Databases } from './databases.ts'
import { type Fault, SHARES } from './faults.ts'
import type { Attempt, Figures } from './figures.ts'
import { PAYLOADS } from './input.ts'
import { SHORTENED } from './settings.ts'

export const title = (transactions: number): string =>
  `Outledger demo: ${transactions} business transactions become webhooks while things break.`

/** The delivery whose attempts are shown at the end. */
export const STORY_KEY = 'capture-1842'

const percent = (fault: Fault): string => `${SHARES[fault] * 100} %`

export function intro(server: string, keyCheck: boolean): string[] {
  return [
    '',
    `  database   ${server.replace('\n', '\n             ')}`,
    '  app        commits business rows together with their events,',
    '             and rolls every tenth transaction back',
    `  events     ${PAYLOADS} payloads of @octokit/webhooks-examples,`,
    '             capture-1842 and eligibility.changed:evt_01J8',
    '  pollers    two processes; one is killed with SIGKILL in mid-flight',
    '  receiver   a process with a database of its own, unreliable on purpose:',
    `             ${percent('http_503')} of its answers are 503, ${percent('silent_after_commit')} never come, after a commit;`,
    `             connections drop, ${percent('dropped_before_commit')} before the commit and ${percent('dropped_after_commit')} after it`,
    ...(keyCheck ? [] : ['             the key check is UNPLUGGED: repetitions take effect']),
    '',
    ...SHORTENED.map((line) => `  ${line}`),
    '',
  ]
}

const ROWS: readonly [name: keyof Figures, meaning: string][] = [
  ['committed', 'business rows'],
  ['rolled_back', 'transactions that left no business row'],
  ['effects', 'rows the receiver wrote'],
  ['lost', 'business rows without an effect'],
  ['phantoms', 'effects without a business row'],
  ['retried', 'attempts after the first'],
  ['unknown', 'attempts that may or may not have been applied'],
  ['worker_lost', 'of these, lost with the killed poller'],
  ['duplicates_absorbed', 'repetitions that the receiver knew by their key'],
]

export function table(figures: Figures): string[] {
  const row = ([name, meaning]: (typeof ROWS)[number]) =>
    `  ${name.replace('_', ' ').padEnd(20)}${String(figures[name]).padStart(5)}   ${meaning}`
  return ['', ...ROWS.map(row)]
}

/** What is wrong with the figures; null when nothing is. */
export function failure(f: Figures, transactions: number): string | null {
  const ran = f.committed + f.rolled_back
  if (ran < transactions) return `not finished in time: ${ran} of ${transactions} transactions have run`
  if (f.open > 0) return `not finished in time: ${f.open} deliveries are open`
  if (f.lost > 0) return `lost ${f.lost}: so many business rows have no effect`
  if (f.phantoms > 0) return `phantoms ${f.phantoms}: so many effects have no business row`
  if (f.effects !== f.committed)
    return `effects ${f.effects}, committed ${f.committed}: some took effect more than once`
  return null
}

export function verdict(wrong: string | null): string {
  return wrong === null
    ? 'Passed: effects = committed, lost 0. Each commit took effect once, no rollback did.'
    : `FAILED: ${wrong}.`
}

export function story(attempts: readonly Attempt[]): string[] {
  const row = ({ number, outcome, reason, took_ms, poller }: Attempt) =>
    `    ${number}   ${outcome.padEnd(12)} ${(reason ?? '').padEnd(16)} ${String(took_ms).padStart(5)} ms   ${poller}`
  return ['', `  ${STORY_KEY} in outbox.attempts:`, ...attempts.map(row)]
}

const QUERIES = [
  'select key, state, attempts, certainty from outbox.deliveries order by attempts desc;',
  `select * from outbox.attempts where key = '${STORY_KEY}';`,
  'select outcome, reason, count(*) from outbox.attempts group by 1, 2 order by 3 desc;',
  'select * from outbox.backlog;',
  'select * from outbox.dead;',
]

export function further({ app, receiver, removal }: Databases, keep: boolean): string[] {
  const where = keep
    ? ['  The databases stay up; to look further:', `    psql '${app}'`]
    : ['  To look further, keep the database up (npm start -- --keep) and ask it:']
  const rest = keep ? ['', `  The receiver's database:  ${receiver}`, `  To remove all of it:      ${removal}`] : []
  return ['', ...where, ...QUERIES.map((query) => `    ${query}`), ...rest, '']
}

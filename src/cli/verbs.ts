// The verbs of the command line, once: the help, the parsing and the manual's table come from here.
import { ENDPOINT_OPTIONS, REVIEW_OPTIONS, ROTATE_OPTIONS } from '../endpoint-options.ts'
import { LIST_OPTIONS } from '../list-options.ts'
import { type OptionTable, POLLER_OPTIONS } from '../options.ts'
import { PERSON_OPTIONS } from '../person.ts'

export interface Verb {
  readonly name: string
  /** The one argument before the options. */
  readonly takes?: string
  /** A line that starts in lower case and ends without a full stop. */
  readonly summary: string
  /** What the verb's own help says beyond the summary. */
  readonly more?: string
  readonly options: OptionTable
  readonly examples: readonly string[]
}

const { default: _optional, ...why } = PERSON_OPTIONS.why
/** Where the record must say why. */
const REASONED = { ...PERSON_OPTIONS, why } as const
const { name: _name, ...SETTINGS } = ENDPOINT_OPTIONS
const { databaseUrl: _url, ...POLLER } = POLLER_OPTIONS

export const LOG_OPTIONS = {
  logLevel: {
    type: 'string',
    default: 'info',
    oneOf: ['debug', 'info', 'warn', 'error', 'silent'],
    doc: 'debug shows deliveries too, warn only trouble',
  },
} as const

const LOAD_OPTIONS = {
  loadPayload: {
    type: 'string',
    default: null,
    doc: 'Path of a module whose default export, or one named as in createPoller, fetches the payloads that deliveries only refer to',
  },
} as const

export const PURGE_OPTIONS = { tombstoneDays: POLLER_OPTIONS.tombstoneDays } as const

const PRINT_OPTIONS = {
  print: {
    type: 'boolean',
    default: null,
    doc: 'Print the SQL instead of running it: what the database lacks, or everything where none is named',
  },
  printGrants: {
    type: 'boolean',
    default: null,
    doc: 'Print SQL that creates the roles outledger_enqueuer, outledger_poller, outledger_reader and outledger_operator with the least rights',
  },
} as const

export const VERBS = [
  {
    name: 'migrate',
    summary: 'create or update the schema outbox',
    more: 'Several may run at once: they take turns. What is printed goes through psql -v ON_ERROR_STOP=1, or any client.',
    options: PRINT_OPTIONS,
    examples: ['outledger migrate', 'outledger migrate --print', 'outledger migrate --print-grants'],
  },
  {
    name: 'endpoint put',
    takes: 'NAME',
    summary: 'create an endpoint, or change its settings',
    more: 'Of an endpoint that exists, what is not given keeps its value; --no-max-attempts and the like take back what may be absent. Another host, region or processor is another recipient: nothing is sent until "outledger endpoint review".',
    options: { ...SETTINGS, ...PERSON_OPTIONS },
    examples: [
      'outledger endpoint put clinic --url https://clinic.example/hooks --secret env:CLINIC_SECRET',
      'outledger endpoint put clinic --timeout-ms 5000',
      'outledger endpoint put clinic --no-timeout-ms',
    ],
  },
  {
    name: 'endpoint list',
    summary: 'all endpoints, removed ones last',
    more: 'Secrets appear only as references.',
    options: {},
    examples: ['outledger endpoint list', 'outledger endpoint list --json'],
  },
  {
    name: 'endpoint show',
    takes: 'NAME',
    summary: 'one endpoint: settings, state, open deliveries, last operations',
    more: 'Secrets appear only as references.',
    options: {},
    examples: ['outledger endpoint show clinic'],
  },
  {
    name: 'endpoint test',
    takes: 'NAME',
    summary: 'send one signed ping and tell how it went',
    more: 'It is the request of a delivery, but of type outledger.ping and without a place in the ledger. Exit code 1 when a delivery would not have been delivered. A paused endpoint is tested too.',
    options: PERSON_OPTIONS,
    examples: ['outledger endpoint test clinic'],
  },
  {
    name: 'endpoint pause',
    takes: 'NAME',
    summary: 'send nothing more to it',
    more: 'What is in flight ends, what is due waits; waiting uses nothing up.',
    options: REASONED,
    examples: ['outledger endpoint pause clinic --why maintenance'],
  },
  {
    name: 'endpoint resume',
    takes: 'NAME',
    summary: 'send to it again',
    more: 'Refused while a change waits for a review.',
    options: PERSON_OPTIONS,
    examples: ['outledger endpoint resume clinic'],
  },
  {
    name: 'endpoint review',
    takes: 'NAME',
    summary: 'accept a changed host, region or processor',
    more: 'It ends the pause that the change made; a pause of a person stays. "outledger endpoint show" says what waits, and the version.',
    options: { ...REVIEW_OPTIONS, ...REASONED },
    examples: ['outledger endpoint review clinic --version 3 --why signed'],
  },
  {
    name: 'endpoint rotate-secret',
    takes: 'NAME',
    summary: 'sign with a new secret, for a while with the old one too',
    more: 'Every poller must know the new reference before. Requests then carry a signature for each secret, the new one first.',
    options: { ...ROTATE_OPTIONS, ...PERSON_OPTIONS },
    examples: ['outledger endpoint rotate-secret clinic --secret env:CLINIC_SECRET_2 --keep-hours 48'],
  },
  {
    name: 'endpoint remove',
    takes: 'NAME',
    summary: 'retire it: enqueue refuses it, its history stays',
    more: 'Refused while deliveries are open. A put takes it back into service.',
    options: PERSON_OPTIONS,
    examples: ['outledger endpoint remove clinic'],
  },
  {
    name: 'status',
    summary: 'is anything wrong? endpoints, pollers, the dead',
    more: 'Counts of what a person must look at go up to 1000. It reads only the views. Exit code 0 says that it could be told, not that all is well: what is wrong stands in trouble under --json.',
    options: {},
    examples: ['outledger status', 'outledger status --json'],
  },
  {
    name: 'show',
    takes: 'KEY',
    summary: 'the whole story of one delivery',
    more: 'All attempts and what was done to it, in the order of time, and while it is open why it is not delivered yet. The payload is never shown.',
    options: {},
    examples: ['outledger show capture-1842'],
  },
  {
    name: 'list',
    summary: 'deliveries by state, endpoint, reason and so on',
    more: 'Newest first. Dead, blocked, open and doubtful ones are found at once; a rare endpoint, type or id alone is looked for through the whole ledger.',
    options: LIST_OPTIONS,
    examples: [
      'outledger list --state dead --endpoint clinic',
      'outledger list --certainty unknown',
      'outledger list --state open --since 2h --limit 20',
    ],
  },
  {
    name: 'work',
    summary: 'deliver, until SIGTERM or SIGINT',
    more: 'What is in flight is finished first; a second signal ends at once. The log is JSON, a line for each event.',
    options: { ...POLLER, ...LOAD_OPTIONS, ...LOG_OPTIONS },
    examples: [
      'outledger work',
      'outledger work --slots 200 --log-level warn',
      'outledger work --load-payload ./store.mjs',
    ],
  },
  {
    name: 'sweep',
    summary: 'look after what nobody looks after, once',
    more: 'Pollers do it by themselves.',
    options: {},
    examples: ['outledger sweep'],
  },
  {
    name: 'purge',
    summary: 'delete what is past its delete_after, one run',
    more: 'Pollers do it by themselves. Only deliveries that have ended can be deleted.',
    options: PURGE_OPTIONS,
    examples: ['outledger purge', 'outledger purge --tombstone-days 730'],
  },
] as const satisfies readonly Verb[]

export type VerbName = (typeof VERBS)[number]['name']

/** What every verb understands besides its own options. */
export const COMMON = {
  'database-url URL': 'The database; default DATABASE_URL',
  json: 'The answer as JSON on stdout, an error as {"error":{"code","message"}} on stderr',
  help: 'This text',
} as const

/** Exit codes. */
export const EXITS = {
  done: [0, 'done'],
  trouble: [1, 'trouble (also: no such key or endpoint)'],
  usage: [2, 'wrong usage'],
  killed: [130, 'ended at once by a second signal'],
} as const

// outledger status
import { type Status, status as statusOf } from '../look.ts'
import type { Count, EndpointStatus, PollerStatus } from '../sql/status.ts'
import { withDatabase } from './database.ts'
import {
  answer,
  type Column,
  durationText,
  facts,
  harmless,
  instantText,
  paint,
  type Screen,
  secondText,
  table,
} from './print.ts'
import { databaseUrl, type Parsed } from './usage.ts'

export async function status(parsed: Parsed, screen: Screen): Promise<number> {
  const found = await withDatabase(databaseUrl(parsed), statusOf)
  answer(screen, parsed, found, () => statusText(screen, found))
  return 0
}

const blank = (n: number) => (n === 0 ? '-' : n)

const ENDPOINTS: readonly Column<EndpointStatus>[] = [
  { title: 'endpoint', of: ({ endpoint }) => endpoint },
  { title: 'due', of: ({ due }) => blank(due), right: true },
  { title: 'leased', of: ({ leased }) => blank(leased), right: true },
  { title: 'scheduled', of: ({ scheduled }) => blank(scheduled), right: true },
  { title: 'parked', of: ({ parked }) => blank(parked), right: true },
  {
    title: 'blocked',
    of: ({ blocked }) => blank(blocked),
    right: true,
    colour: ({ blocked }) => (blocked > 0 ? 'red' : undefined),
  },
  {
    title: 'oldest due',
    of: ({ oldestDueMs }) => (oldestDueMs === null ? '-' : durationText(oldestDueMs)),
    right: true,
  },
  {
    title: 'state',
    of: ({ state }) => state,
    colour: ({ state }) => (state === 'open' ? 'green' : state === 'removed' ? 'dim' : 'yellow'),
  },
]

const POLLERS: readonly Column<PollerStatus>[] = [
  { title: 'poller', of: ({ name }) => name },
  { title: 'version', of: ({ version }) => version },
  { title: 'started', of: ({ startedAt }) => secondText(startedAt), whole: true },
  {
    title: 'heartbeat',
    whole: true,
    of: ({ alive, sinceHeartbeatMs: ms }) => (alive ? `${durationText(ms)} ago` : `silent for ${durationText(ms)}`),
    colour: ({ alive }) => (alive ? 'green' : 'yellow'),
  },
]

function statusText(screen: Screen, s: Status): string {
  const { trouble } = s
  const verdict =
    trouble.length === 0
      ? paint(screen, 'green', 'nothing is wrong')
      : paint(screen, 'red', trouble.length === 1 ? '1 thing is wrong' : `${trouble.length} things are wrong`)
  const number = ({ count, more }: Count) => `${count}${more ? '+' : ''}`
  const kinds = Object.entries(s.review.kinds)
    .map(([what, n]) => `${n} ${what}`)
    .join(', ')
  return [
    `${instantText(s.at)}  ${verdict}`,
    ...trouble.map((line) => `  ${paint(screen, 'red', '!')} ${harmless(line)}`),
    '',
    s.endpoints.length === 0
      ? 'no endpoints; create one with "outledger endpoint put"'
      : table(screen, ENDPOINTS, s.endpoints),
    '',
    s.pollers.length === 0 ? 'no pollers; start one with "outledger work"' : table(screen, POLLERS, s.pollers),
    '',
    facts(screen, [
      ['dead', number(s.dead)],
      ['may have been applied', number(s.unknown)],
      ['to review', `${number(s.review)}${kinds === '' ? '' : ` (${kinds})`}`],
      [
        'last purge',
        s.lastPurge === null ? 'never' : `${instantText(s.lastPurge.finishedAt)}, ${s.lastPurge.deliveries} deliveries`,
      ],
    ]),
  ].join('\n')
}

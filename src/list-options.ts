// The filters of a list of deliveries, once: type, default, range and what each means.
import { ENDED_STATES, OPEN_STATES } from './core/state.ts'
import type { OptionTable } from './options.ts'

/** Filters of `list` and `outledger list`. */
export const LIST_OPTIONS = {
  state: {
    type: 'string',
    default: null,
    oneOf: ['open', ...OPEN_STATES, ...ENDED_STATES],
    doc: 'State; open for all that have not ended',
  },
  endpoint: { type: 'string', default: null, doc: 'Name of the endpoint' },
  type: { type: 'string', default: null, doc: 'Event type' },
  orderingKey: { type: 'string', default: null, doc: 'Ordering key' },
  correlationId: { type: 'string', default: null, doc: 'Correlation id' },
  reason: { type: 'string', default: null, doc: 'Why it is dead, cancelled or blocked, such as gone or exhausted' },
  certainty: {
    type: 'string',
    default: null,
    oneOf: ['not_attempted', 'delivered', 'unknown', 'not_applied', 'rejected'],
    doc: 'Could the other side have applied it; unknown leaves out first attempts in flight',
  },
  since: { type: 'string', default: null, doc: 'Written so long ago or later: 15min, 2h, 3d, or a time with its zone' },
  until: { type: 'string', default: null, doc: 'Written longer ago: 15min, 2h, 3d, or before a time with its zone' },
  before: { type: 'string', default: null, doc: 'Only older ones than the delivery with this id: the next page' },
  limit: { type: 'integer', default: 100, min: 1, max: 1_000, doc: 'At most so many' },
} as const satisfies OptionTable

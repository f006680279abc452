// What the app will do: one business row and one event each, the same in every run.
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

export type Table = 'payment' | 'eligibility' | 'webhook'

export interface Transaction {
  readonly table: Table
  readonly key: string
  readonly type: string
  readonly payload: object
  /** The app changes its mind after row and event are written. */
  readonly rollsBack: boolean
}

interface Definition {
  readonly name: string
  readonly examples: readonly ({ readonly action?: string } & object)[]
}

/** The payloads of @octokit/webhooks-examples: what GitHub really sends. */
const examples = (
  JSON.parse(
    readFileSync(fileURLToPath(import.meta.resolve('@octokit/webhooks-examples')), 'utf8'),
  ) as readonly Definition[]
).flatMap(({ name, examples }) =>
  examples.map((payload) => ({ type: payload.action === undefined ? name : `${name}.${payload.action}`, payload })),
)

export const PAYLOADS = examples.length

const STORY: readonly Omit<Transaction, 'rollsBack'>[] = [
  {
    table: 'payment',
    key: 'capture-1842',
    type: 'payment.captured',
    payload: { payment: 'capture-1842', amount: { value: '49.90', currency: 'EUR' }, order: 'order-7731' },
  },
  {
    table: 'eligibility',
    key: 'eligibility.changed:evt_01J8',
    type: 'eligibility.changed',
    payload: { event: 'evt_01J8', member: 'm-20417', plan: 'dental-plus', eligible: false, from: '2025-07-01' },
  },
]

export function transactions(length: number): Transaction[] {
  return Array.from({ length }, (_, i) => {
    const rollsBack = i % 10 === 9
    const told = STORY[i]
    if (told !== undefined) return { ...told, rollsBack }
    const { type, payload } = examples[i % PAYLOADS] as (typeof examples)[number]
    return { table: 'webhook', key: `${type}:evt_${String(i).padStart(4, '0')}`, type, payload, rollsBack }
  })
}

// What is shorter in the demo than in life, told with both values; the defaults come from where they are defined.
import { ENDPOINT_OPTIONS } from '../../src/endpoint-options.ts'
import { POLLER_OPTIONS } from '../../src/options.ts'

export const RETRY_DELAY_MS = 1_000

/** Short, yet with room for a machine whose cores are busy. */
const POLLER = {
  timeoutMs: 1_000,
  leaseMs: 3_000,
  settleBudgetMs: 1_000,
  heartbeatMs: 1_000,
  graceMs: 1_000,
} as const

const WORDS = {
  timeoutMs: 'timeout',
  leaseMs: 'lease',
  settleBudgetMs: 'settle budget',
  heartbeatMs: 'heartbeat',
  graceMs: 'grace time',
} as const

type Name = keyof typeof POLLER

/** Flags of `outledger work`. */
export const POLLER_FLAGS: readonly string[] = Object.entries(POLLER).flatMap(([name, ms]) => [
  `--${name.replace(/[A-Z]/g, (c) => `-${c.toLowerCase()}`)}`,
  String(ms),
])

/** One line for each shortened setting. */
export const SHORTENED: readonly string[] = [
  told('retry pause', ENDPOINT_OPTIONS.retryDelayMs.default, RETRY_DELAY_MS),
  ...(Object.keys(POLLER) as Name[]).map((name) => told(WORDS[name], POLLER_OPTIONS[name].default, POLLER[name])),
]

function told(word: string, usualMs: number, hereMs: number): string {
  const usual = `${word} of ${usualMs / 1000} s`
  return `${usual.padEnd(21)} shortened to ${hereMs / 1000} s for the demo`
}

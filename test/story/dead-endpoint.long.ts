// The promise about a dead endpoint in full: minutes, not seconds.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { deadEndpoint } from '../support/dead-endpoint.ts'

test('a dead endpoint with 100,000 due deliveries costs the others nothing, and loses nothing', {
  timeout: 600_000,
}, async (t) => {
  const rows = 100_000
  const figures = await deadEndpoint({ rows, beside: 600, turns: 7, probes: 3 })
  t.diagnostic(JSON.stringify(figures))
  assert.ok(figures.probes <= Math.floor(figures.trippedS / 5) + 1)
  assert.ok(figures.linesASecond <= 1)
  const costs = figures.turns.map(({ aloneMs, besideMs }) => besideMs - Math.max(1.2 * aloneMs, aloneMs + 10))
  const middle = costs.sort((a, b) => a - b)[Math.floor(costs.length / 2)] ?? Number.NaN
  assert.ok(middle <= 0, 'within a fifth or 10 ms')
  assert.deepEqual([figures.delivered, figures.lost, figures.requests, figures.effects], [rows, 0, rows, rows])
})

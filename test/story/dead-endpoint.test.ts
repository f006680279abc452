import assert from 'node:assert/strict'
import { test } from 'node:test'
import { deadEndpoint } from '../support/dead-endpoint.ts'

// In full, with its cost to others: npm run long
test('of a dead endpoint with a backlog only probes are sent, and all of it is delivered once it is back', async (t) => {
  const figures = await deadEndpoint({ rows: 2_000, beside: 50, turns: 1, probes: 1 })
  t.diagnostic(JSON.stringify(figures))
  assert.ok(figures.before < 1_000, 'most of the backlog was never tried')
  // After 5 seconds, after 10 more, and so on.
  assert.ok(figures.probes <= Math.floor(figures.trippedS / 5) + 1)
  assert.ok(figures.linesASecond <= 1)
  assert.deepEqual([figures.delivered, figures.lost, figures.requests, figures.effects], [2_000, 0, 2_000, 2_000])
})

// The promise about a dead endpoint in full: minutes, not seconds.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { deadEndpoint } from '../support/dead-endpoint.ts'

test('a dead endpoint with 100,000 due deliveries costs the others nothing, and loses nothing', {
  timeout: 600_000,
}, async (t) => {
  const rows = 100_000
  const figures = await deadEndpoint({ rows, beside: 2_000, probes: 3 })
  t.diagnostic(JSON.stringify(figures))
  assert.ok(figures.probes <= Math.floor(figures.trippedS / 5) + 1)
  assert.ok(figures.linesASecond <= 1)
  assert.ok(figures.p99BesideMs <= Math.max(1.2 * figures.p99AloneMs, figures.p99AloneMs + 10))
  assert.deepEqual([figures.delivered, figures.lost, figures.requests, figures.effects], [rows, 0, rows, rows])
})

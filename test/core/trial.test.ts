import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ALONE_FROM, type Trial, trialOf } from '../../src/core/trial.ts'

const rows: readonly [why: string, lost: number, wanted: Trial][] = [
  ['never lost', 0, 'together'],
  ['lost once, which may be chance', 1, 'together'],
  ['lost twice', 2, 'alone'],
  ['lost once alone', 3, 'alone'],
  ['lost four times alone', 6, 'alone'],
  ['lost five times alone', 7, 'poison'],
  ['lost ever so often, by pollers that knew no such limit', 32_767, 'poison'],
]

for (const [why, lost, wanted] of rows) test(`trial: ${why}`, () => assert.equal(trialOf(lost), wanted))

test('the database looks for the same deliveries', () => {
  assert.equal(trialOf(ALONE_FROM - 1), 'together')
  assert.equal(trialOf(ALONE_FROM), 'alone')
})

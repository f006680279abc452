import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SUSPECT_FROM, type Suspicion, suspicionOf } from '../../src/core/suspicion.ts'

const rows: readonly [why: string, lost: number, wanted: Suspicion][] = [
  ['never lost', 0, 'none'],
  ['lost once, which may be chance', 1, 'none'],
  ['lost twice', 2, 'suspect'],
  ['lost once alone', 3, 'suspect'],
  ['lost four times alone', 6, 'suspect'],
  ['lost five times alone', 7, 'poison'],
  ['lost ever so often, by pollers that knew no such limit', 32_767, 'poison'],
]

for (const [why, lost, wanted] of rows) test(`suspicion: ${why}`, () => assert.equal(suspicionOf(lost), wanted))

test('the database looks for the same deliveries', () => {
  assert.equal(suspicionOf(SUSPECT_FROM - 1), 'none')
  assert.equal(suspicionOf(SUSPECT_FROM), 'suspect')
})

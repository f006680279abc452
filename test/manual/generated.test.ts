// The tables of the manual that come from the source.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readCatalog } from '../../scripts/manual/catalog.ts'
import { manual, SECTIONS } from '../../scripts/manual/sections.ts'
import { testDatabase } from '../support/database.ts'
import { README } from '../support/manual.ts'

const db = await testDatabase()
const views = await readCatalog((text) => db.query(text))

test('README.md is what "npm run manual" writes', () => {
  assert.ok(manual(README, views) === README, 'a table has changed in the source; run "npm run manual"')
})

test('every view and every column of a view has a comment', () => {
  assert.ok(views.length > 10)
  const silent = views.flatMap(({ name, comment, columns }) => [
    ...(comment === '' ? [name] : []),
    ...columns.filter((column) => column.comment === '').map((column) => `${name}.${column.name}`),
  ])
  assert.deepEqual(silent, [])
})

test('a section without a place in README.md is missed, and a place without a section', () => {
  const [first = ''] = Object.keys(SECTIONS)
  assert.throws(() => manual(README.replace(`<!-- ${first}:begin -->`, ''), views), /has places for/)
  assert.throws(() => manual(`${README}<!-- metrics:begin -->\n<!-- metrics:end -->`, views), /has places for.*metrics/)
})

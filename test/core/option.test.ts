import assert from 'node:assert/strict'
import { test } from 'node:test'
import { didYouMean, type OptionSpec, optionProblem } from '../../src/core/option.ts'

const integer: OptionSpec = { type: 'integer', min: 1, max: 1_000, doc: '' }
const number: OptionSpec = { type: 'number', min: 1, max: 10, doc: '' }
const string: OptionSpec = { type: 'string', doc: '' }
const choice: OptionSpec = { type: 'string', oneOf: ['block', 'skip'], doc: '' }
const boolean: OptionSpec = { type: 'boolean', doc: '' }

const cycle: { self?: unknown } = {}
cycle.self = cycle

const WHOLE = 'it must be a whole number from 1 to 1000'

const rows: readonly (readonly [why: string, value: unknown, spec: OptionSpec, wanted: string | null])[] = [
  ['the least', 1, integer, null],
  ['the most', 1_000, integer, null],
  ['below the least', 0, integer, 'is 0; it must be from 1 to 1000'],
  ['above the most', 1_001, integer, 'is 1001; it must be from 1 to 1000'],
  ['a fraction', 1.5, integer, `is 1.5; ${WHOLE}`],
  ['text that looks like a number', '64', integer, `is "64"; ${WHOLE}`],
  ['not a number', Number.NaN, integer, `is NaN; ${WHOLE}`],
  ['infinity', Number.POSITIVE_INFINITY, integer, `is Infinity; ${WHOLE}`],
  ['beyond what a double counts exactly', 2 ** 53, integer, `is 9007199254740992; ${WHOLE}`],
  ['a BigInt', 5n, integer, `is 5; ${WHOLE}`],
  ['a boolean', true, integer, `is true; ${WHOLE}`],
  ['an object', {}, integer, `is an object; ${WHOLE}`],
  ['an object that contains itself', cycle, integer, `is an object; ${WHOLE}`],
  ['a list', [5], integer, `is an object; ${WHOLE}`],
  ['a symbol', Symbol('x'), integer, `is Symbol(x); ${WHOLE}`],
  ['a fraction where it may be one', 1.5, number, null],
  ['a fraction above the most', 10.5, number, 'is 10.5; it must be from 1 to 10'],
  [
    'infinity where a fraction may be',
    Number.POSITIVE_INFINITY,
    number,
    'is Infinity; it must be a number from 1 to 10',
  ],
  ['text', 'p-1', string, null],
  ['no text', '', string, 'is empty'],
  ['a number where text must be', 5, string, 'is 5; it must be a string'],
  ['one of the choices', 'skip', choice, null],
  ['none of the choices', 'Skip', choice, 'is "Skip"; it must be one of block, skip'],
  ['a boolean where it may be one', false, boolean, null],
  ['text where a boolean must be', 'yes', boolean, 'is "yes"; it must be a boolean'],
  ['a number where a boolean must be', 0, boolean, 'is 0; it must be a boolean'],
]

for (const [why, value, spec, wanted] of rows) {
  test(`option value: ${why} is ${wanted === null ? 'taken' : 'refused by value and limit'}`, () => {
    assert.equal(optionProblem(value, spec), wanted)
  })
}

test('a long value is cut in the message', () => {
  assert.ok((optionProblem('x'.repeat(10_000), integer) ?? '').length < 200)
})

const KNOWN = ['slots', 'leaseMs', 'timeoutMs', 'settleBudgetMs', 'pollIntervalMs', 'onDead', 'url']

const names: readonly (readonly [why: string, name: string, wanted: string | null])[] = [
  ['a letter too few', 'slot', 'slots'],
  ['a letter too many', 'slotss', 'slots'],
  ['two letters swapped', 'lesaeMs', 'leaseMs'],
  ['another case', 'LEASEMS', 'leaseMs'],
  ['another unit', 'timeoutSeconds', null],
  ['half of a long name', 'settleBudget', 'settleBudgetMs'],
  ['the word order of another library', 'pollingIntervalMs', 'pollIntervalMs'],
  ['nothing like it', 'concurrency', null],
  ['nothing at all', '', null],
]

for (const [why, name, wanted] of names) {
  test(`unknown name: ${why} suggests ${wanted ?? 'nothing'}`, () => {
    assert.equal(didYouMean(name, KNOWN), wanted === null ? '' : `; did you mean "${wanted}"?`)
  })
}

test('without known names there is nothing to suggest', () => {
  assert.equal(didYouMean('slots', []), '')
})

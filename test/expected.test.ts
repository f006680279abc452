// What a reconciliation expects: how it is defined, and how its rows are read in pages.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { drizzle } from 'drizzle-orm/postgres-js'
import postgres from 'postgres'
import { definitionOf, pagesOf } from '../src/expected.ts'
import { defineReconciliation, type Reconciliation, reconcileOnce } from '../src/index.ts'
import type { Executor } from '../src/sql/executor.ts'
import { anyExecutor } from '../src/transaction.ts'
import { testDatabase } from './support/database.ts'
import { addEndpoint } from './support/ledger.ts'

const db = await testDatabase()
await addEndpoint(db)
const client = postgres(db.url, { max: 2, fetch_types: false, onnotice: () => {} })
after(() => client.end({ timeout: 1 }))
const orm = drizzle(client)

const toMessage = ({ id }: Record<string, unknown>) => ({
  ...{ key: `k-${id}`, endpoint: 'clinic', type: 't', payload: {} },
})
const good = { name: 'good', expected: 'select 1 as id', pageBy: 'id', toMessage }

const BAD: [why: string, more: object, message: RegExp][] = [
  ['no name', { name: undefined }, /^name "undefined" must be/],
  ['a name with a blank', { name: 'a b' }, /^name "a b" must be/],
  ['a name that is too long', { name: 'x'.repeat(201) }, /must be 1 to 200/],
  ['the name of the app itself', { name: 'app' }, /not "app"/],
  ['an unknown field', { pageby: 'id' }, /^reconciliation r: unknown field "pageby"; did you mean "pageBy"\?/],
  ['no function', { toMessage: undefined }, /toMessage must be a function/],
  ['nothing expected', { expected: undefined }, /expected must be the text of a query, or a function/],
  ['no column to page by', { pageBy: undefined }, /pageBy must name a column of the query that is unique/],
  ['a query with a parameter', { expected: 'select $1 as id' }, /the query takes no parameters/],
]

for (const [why, more, message] of BAD)
  test(`a definition with ${why} is refused`, () => {
    const definition = { ...good, name: 'r', ...more } as Reconciliation
    assert.throws(() => defineReconciliation(definition), { code: 'invalid_reconciliation', message })
    assert.throws(() => definitionOf('r'), { code: 'unknown_reconciliation' })
  })

test('a name stands for one definition, and an unknown one has its neighbour named', async () => {
  assert.equal(defineReconciliation(good), good)
  assert.throws(() => defineReconciliation({ ...good }), {
    code: 'invalid_reconciliation',
    message: /good: is defined already/,
  })
  await assert.rejects(reconcileOnce(db, 'goood'), {
    code: 'unknown_reconciliation',
    message: /"goood" is defined in this process; did you mean "good"\?/,
  })
  // A twin of it has not been checked by anybody.
  await assert.rejects(reconcileOnce(db, { ...good }), { code: 'unknown_reconciliation' })
  assert.equal((await reconcileOnce(db, 'good')).enqueued, 1)
  assert.deepEqual(await db.query('select name from outbox.reconciliation'), [{ name: 'good' }])
})

const pages = async (definition: Omit<Reconciliation, 'name' | 'toMessage'>, executor: Executor = db) => {
  const all: Record<string, unknown>[][] = []
  for await (const page of pagesOf(db, executor, { name: 'pages', toMessage, ...definition })) all.push(page)
  return all
}
const sizes = (all: unknown[][]) => all.map(({ length }) => length)

const TYPES: [type: string, expression: string][] = [
  ['integer', 'i'],
  ['bigint', '9007199254740993 + i'],
  ['numeric', 'i / 7.0'],
  ['uuid', `md5(i::text)::uuid`],
  ['text', `'Key ' || i`],
  ['text in another order', `('é' || i) collate "C"`],
  ['timestamptz', `'2026-01-01 00:00+00'::timestamptz + i * interval '1 microsecond'`],
  ['timestamp', `'2026-01-01'::timestamp + i * interval '1 microsecond'`],
  ['date', `'2026-01-01'::date + i`],
  ['char(n)', `lpad(i::text, 26, '0')::char(26)`],
  ['bit(n)', 'i::bit(14)'],
  ['double precision', 'i / 7.0::float8'],
  ['a name that wants quotes', 'i'],
]

for (const [type, expression] of TYPES)
  test(`rows paged by ${type} come each once, over either client`, async () => {
    const pageBy = type.includes('quotes') ? 'Page "by"' : 'position'
    const expected = `select i as id, ${expression} as "${pageBy.replaceAll('"', '""')}" from generate_series(1, 2500) i order by random() -- all`
    for (const executor of [db, anyExecutor(orm)]) {
      const all = await pages({ expected, pageBy }, executor)
      assert.deepEqual(sizes(all), [1_000, 1_000, 500])
      assert.equal(new Set(all.flat().map(({ id }) => id)).size, 2_500)
      assert.deepEqual(Object.keys(all[0]?.[0] ?? {}), ['id', pageBy], 'and nothing of ours beside them')
    }
  })

test('a page that is just full is the last when nothing follows', async () => {
  const expected = (n: number) => `select i as id from generate_series(1, ${n}) i`
  for (const [n, wanted] of [
    [0, []],
    [1, [1]],
    [1_000, [1_000]],
    [1_001, [1_000, 1]],
    [2_000, [1_000, 1_000]],
  ] as const)
    assert.deepEqual(sizes(await pages({ expected: expected(n), pageBy: 'id' })), wanted)
})

test('a column that would lose rows is refused: null somewhere, or the same on both sides of a page', async () => {
  const twice = 'select i as id, i / 2 as half from generate_series(0, 1999) i'
  const straddling = 'select i as id, (i + 1) / 2 as half from generate_series(0, 1999) i'
  assert.deepEqual(sizes(await pages({ expected: twice, pageBy: 'half' })), [1_000, 1_000], 'nothing is lost here')
  await assert.rejects(pages({ expected: straddling, pageBy: 'half' }), {
    code: 'invalid_reconciliation',
    message: /pageBy half is the same in two rows/,
  })
  const blank = 'select i as id, nullif(i, 3) as maybe from generate_series(1, 5) i'
  await assert.rejects(pages({ expected: blank, pageBy: 'maybe' }), {
    code: 'invalid_reconciliation',
    message: /pageBy maybe is null in some rows/,
  })
})

test('an instant is passed on without a DateStyle, whose abbreviations stand for several time zones', async () => {
  const connection = { DateStyle: 'SQL, DMY', TimeZone: 'Asia/Kolkata' }
  const indian = postgres(db.url, { max: 1, fetch_types: false, connection })
  after(() => indian.end({ timeout: 1 }))
  for (const position of [`'2026-01-01 00:00Z'::timestamptz`, `'2026-01-01'::timestamp`]) {
    const expected = `select ${position} + i * interval '1 second' as at from generate_series(1, 1500) i`
    assert.deepEqual(sizes(await pages({ expected, pageBy: 'at' }, anyExecutor(indian))), [1_000, 500])
  }
})

const INSIDE = [
  "\nwhere ';' <> '; -- x'",
  ' /* a; -- */',
  '; /* a /* b; */ c */',
  "\nwhere E''';\\'; --' <> ''; -- it's",
  '\nwhere $x$; --$x$ <> $$;$$;',
]

test('a query may end as people end theirs, and a long line of dashes takes no time', async () => {
  for (const end of [
    '',
    ';',
    ' ;; \n',
    '; -- done',
    '; /* done; ** / */ -- and done\n-- twice\n;',
    ' -- a; b',
    ...INSIDE,
  ])
    assert.deepEqual(sizes(await pages({ expected: `select 1 as id${end}`, pageBy: 'id' })), [1], end)
  const within = '-- of two; /*\nwhere id = 1\n-- */'
  const two = `select id from generate_series(1, 2) id\n${within}`
  assert.deepEqual(sizes(await pages({ expected: two, pageBy: 'id' })), [1], 'no condition is lost')
  const expected = `-- payments;${'-'.repeat(200)}${';'.repeat(20_000)}\nselect 1 as id`
  assert.deepEqual(sizes(await pages({ expected, pageBy: 'id' })), [1])
})

test("what is wrong in the query is the database's to say, without the client's words about it", async () => {
  for (const executor of [db, anyExecutor(orm)]) {
    await assert.rejects(pages({ expected: 'select id from nothing_here', pageBy: 'id' }, executor), {
      code: '42P01',
      message: 'relation "nothing_here" does not exist',
    })
    await assert.rejects(pages({ expected: 'select 1 as id', pageBy: 'other' }, executor), {
      code: '42703',
      message: 'column e.other does not exist',
    })
  }
})

test('rows from a function come in pages too, and are drawn no faster than they are looked at', async () => {
  let drawn = 0
  async function* rows() {
    while (drawn < 2_500) yield { id: ++drawn }
  }
  const seen: [number, number][] = []
  for await (const page of pagesOf(db, db, { name: 'drawn', expected: rows, toMessage }))
    seen.push([page.length, drawn])
  assert.deepEqual(seen, [
    [1_000, 1_000],
    [1_000, 2_000],
    [500, 2_500],
  ])
  assert.deepEqual(sizes(await pages({ expected: () => [{ id: 1 }, { id: 2 }] })), [2])
  assert.deepEqual(sizes(await pages({ expected: async (handle) => (handle === db ? [{ id: 1 }] : []) })), [1])
  assert.deepEqual(sizes(await pages({ expected: () => [] })), [])
})

test('a query is read with its own index, a page at a time, not as a whole for each page', async () => {
  await db.query('create table payment as select i as id, i as cents from generate_series(1, 20000) i')
  await db.query('alter table payment add primary key (id)')
  await db.query('vacuum analyze payment')
  const texts: [string, readonly (string | null)[]][] = []
  const watched: Executor = {
    run: (text, values) => {
      if (text.includes('order by')) texts.push([text, values])
      return db.run(text, values)
    },
  }
  assert.equal(
    (await pages({ expected: 'select id, cents from payment where cents > 0', pageBy: 'id' }, watched)).length,
    20,
  )
  const [text, values] = texts[10] ?? ['', []]
  const plan = (await db.run<Record<string, string>>(`explain ${text}`, values))
    .map((line) => line['QUERY PLAN'])
    .join('\n')
  assert.match(plan, /Index Scan using payment_pkey/)
  assert.doesNotMatch(plan, /Seq Scan|Sort/)
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ENDPOINT_OPTIONS } from '../src/endpoint-options.ts'
import { type EndpointGiven, listEndpoints, OutledgerError, putEndpoint } from '../src/index.ts'
import { testDatabase } from './support/database.ts'
import { testSecret, testSecretValue } from './support/secret.ts'

const db = await testDatabase()
const secret = testSecret()
const HOUR = 3_600_000

process.env.OUTLEDGER_TEST_SHORT = `whsec_${Buffer.alloc(23, 7).toString('base64')}`
process.env.OUTLEDGER_TEST_EMPTY = ''
process.env.OUTLEDGER_TEST_BEARER = 'Bearer t0ken'
process.env.OUTLEDGER_TEST_TWO_LINES = 'Bearer a\nb'

const good: EndpointGiven = { name: 'clinic', url: 'https://clinic.example/hooks', secret }

/** Everything a put could have written. */
const written = () =>
  db.query(
    `select (select json_agg(e order by id) from outbox.endpoint e) as endpoints, (select count(*)::int from outbox.operation) as operations`,
  )

type Row = readonly [why: string, wrong: object, message: RegExp, code?: OutledgerError['code']]

const refused: readonly Row[] = [
  ['no URL', { url: undefined }, /^option url is required$/],
  ['no secret', { secret: undefined }, /^option secret is required$/],
  ['no name', { name: undefined }, /^option name is required$/],
  ['an empty name', { name: '' }, /^option name is empty$/],
  ['a name with a blank', { name: 'my clinic' }, /^name "my clinic" must be 1 to 200 of A-Z a-z 0-9 \. _ : -$/],
  ['a name with U+0000', { name: 'a\0' }, /^name "a\\u0000" must be 1 to 200/],
  ['a name that is too long', { name: 'n'.repeat(201) }, /^name "n{100}.* must be 1 to 200/],
  ['a name that is no text', { name: 7 }, /^option name is 7; it must be a string$/],
  ['a class with a slash', { class: 'a/b' }, /^class "a\/b" must be 1 to 64/],
  ['a region with U+0000', { region: 'eu\0' }, /^region has 3 characters; it must be up to 200 of text$/],
  ['half a character', { processor: '\ud800' }, /^processor has 1 characters; it must be up to 200 of text$/],
  ['a misspelt setting', { retryDelay: 5 }, /^unknown option "retryDelay"; did you mean "retryDelayMs"\?$/],
  ['http', { url: 'http://clinic.example/' }, /^url of endpoint clinic is http: use https, or allowInsecure/],
  [
    'another scheme',
    { url: 'ftp://clinic.example/' },
    /^url of endpoint clinic has the scheme ftp: and must be https$/,
  ],
  ['credentials in the URL', { url: 'https://me:pw@clinic.example/' }, /contains credentials: use a secret reference/],
  ['a fragment', { url: 'https://clinic.example/#x' }, /contains a fragment/],
  ['no URL at all', { url: 'clinic.example' }, /is not a URL$/],
  [
    'a horizon beyond the key window',
    { keyWindowMs: HOUR },
    /^keyWindowMs 3600000 is shorter than horizonMs 259200000: .*; shorten horizonMs$/,
  ],
  ['more lanes than requests', { concurrency: 4 }, /^partitions 8 exceeds concurrency 4: .*; lower partitions$/],
  ['a negative delay', { retryDelayMs: -1 }, /^option retryDelayMs is -1; it must be from 0 to 86400000$/],
  ['a factor below 1', { backoffFactor: 0.5 }, /^option backoffFactor is 0.5; it must be from 1 to 10$/],
  ['no attempt at all', { maxAttempts: 0 }, /^option maxAttempts is 0; it must be from 1 to 100000$/],
  ['another policy', { onDead: 'drop' }, /^option onDead is "drop"; it must be one of block, skip$/],
  ['text as a switch', { allowPrivate: 'yes' }, /^option allowPrivate is "yes"; it must be a boolean$/],
  ['a URL that receivers refuse', { url: `https://clinic.example/${'a'.repeat(2_000)}` }, /^url has 2023 characters;/],
  ['headers that they refuse', { headers: `{"x":"${'a'.repeat(8_000)}"}` }, /^headers has 8008 characters;/],
  ['headers that are no JSON', { headers: 'x-a: b' }, /^headers must be a JSON object of names and values$/],
  ['headers as a list', { headers: '["x-a"]' }, /^headers must be a JSON object/],
  [
    'a header of the body',
    { headers: '{"Content-Encoding":"gzip"}' },
    /^header Content-Encoding is ours to set; remove it$/,
  ],
  ['a header of the connection', { headers: '{"Proxy-Connection":"close"}' }, /^header Proxy-Connection is ours/],
  ['a header of ours', { headers: '{"Webhook-Id":"x"}' }, /^header Webhook-Id is ours to set; remove it$/],
  ['a header with a colon', { headers: '{"x:a":"b"}' }, /^header "x:a" is no header name$/],
  [
    'a header value with a line break',
    { headers: '{"x-a":"b\\r\\nx-c: d"}' },
    /^the value of header x-a must be printable ASCII text$/,
  ],
  [
    'a header value that is a number',
    { headers: '{"x-a":1}' },
    /^the value of header x-a must be printable ASCII text$/,
  ],
  [
    'a secret in a file that is another one for each poller',
    { secret: 'file:run/secret' },
    /^secret reference "file:run\/secret" cannot be resolved: its path is relative.+ give the absolute path$/,
    'secret_unresolvable',
  ],
  ['a secret in clear', { secret: testSecretValue }, /a reference is env:NAME or file:\/path$/, 'secret_unresolvable'],
  [
    'a variable that is not set',
    { secret: 'env:OUTLEDGER_TEST_UNSET' },
    /the variable is not set; set OUTLEDGER_TEST_UNSET/,
    'secret_unresolvable',
  ],
  ['an empty variable', { secret: 'env:OUTLEDGER_TEST_EMPTY' }, /the variable is not set/, 'secret_unresolvable'],
  [
    'a file that is not there',
    { secret: 'file:/nowhere/secret' },
    /reading it failed with ENOENT/,
    'secret_unresolvable',
  ],
  [
    'a secret that is too short',
    { secret: 'env:OUTLEDGER_TEST_SHORT' },
    /is no secret: it must be "whsec_" followed by base64 of 24 to 64 bytes$/,
  ],
  [
    'an authorization that is not set',
    { authorization: 'env:OUTLEDGER_TEST_UNSET' },
    /the variable is not set/,
    'secret_unresolvable',
  ],
  [
    'an authorization of two lines',
    { authorization: 'env:OUTLEDGER_TEST_TWO_LINES' },
    /^the value of authorization "env:OUTLEDGER_TEST_TWO_LINES" must be printable ASCII text/,
  ],
]

for (const [why, wrong, message, code = 'invalid_endpoint'] of refused) {
  test(`an endpoint with ${why} is refused as ${code}, and nothing is written`, async () => {
    const before = await written()
    await assert.rejects(putEndpoint(db.sql, { ...good, ...wrong } as EndpointGiven), (error) => {
      assert.ok(error instanceof OutledgerError, String(error))
      assert.equal(error.code, code)
      assert.match(error.message, message)
      assert.ok(!error.message.includes(testSecretValue), 'the message shows a secret')
      return true
    })
    assert.deepEqual(await written(), before)
  })
}

test('a second put changes what it names, keeps the rest, and both are on record without a secret', async () => {
  const first = await putEndpoint(
    db.sql,
    {
      ...good,
      class: 'clinic',
      retryDelayMs: 60_000,
      maxAttempts: 9,
      authorization: 'env:OUTLEDGER_TEST_BEARER',
      headers: '{"x-a":"b"}',
    },
    { by: 'ann' },
  )
  const second = await putEndpoint(
    db.sql,
    { name: 'clinic', retryDelayMs: 120_000, maxAttempts: null, class: undefined },
    { by: 'bob' },
  )
  assert.deepEqual(second, { ...first, retryDelayMs: 120_000, maxAttempts: null, version: first.version + 1 })
  assert.deepEqual([...(await listEndpoints(db.sql))], [second])

  const records = await db.query<{
    who: string
    detail: { old: Record<string, unknown> | null; new: Record<string, unknown> }
  }>(`select who, detail from outbox.operation where verb = 'endpoint put' and subject = 'clinic' order by id`)
  assert.deepEqual(
    records.map(({ who, detail }) => [
      who,
      detail.old?.retry_delay_ms,
      detail.new.retry_delay_ms,
      detail.new.max_attempts,
    ]),
    [
      ['ann', undefined, 60_000, 9],
      ['bob', 60_000, 120_000, null],
    ],
  )
  assert.deepEqual(records[1]?.detail.old, records[0]?.detail.new)
  const everything = JSON.stringify([await written(), await db.query('select * from outbox.operation'), second])
  for (const value of [testSecretValue, 't0ken']) assert.ok(!everything.includes(value), 'a secret is in the database')
})

test('every setting of an endpoint can be changed, and is listed as it was given', async () => {
  const settings: EndpointGiven = {
    ...{ name: 'clinic', class: 'hospital', url: 'http://127.0.0.1:8080/in', secret: 'env:OUTLEDGER_TEST_OTHER' },
    ...{ authorization: 'env:OUTLEDGER_TEST_SECRET', headers: '{"x-b":"c"}', timeoutMs: 7_000, retryDelayMs: 1_000 },
    ...{ backoffFactor: 2.5, maxDelayMs: 8_000, horizonMs: 9_000, maxAttempts: 3, keyWindowMs: 10_000 },
    ...{ concurrency: 12, partitions: 11, onDead: 'skip', retentionDays: 5, allowInsecure: true, allowPrivate: true },
    ...{ region: 'eu', processor: 'Clinic Ltd', captureResponse: true },
    ...{ statusPolicy: '{"404":"retry"}', on409: 'delivered', onUnknown: 'review', keyFormat: 'sf-string' },
  }
  process.env.OUTLEDGER_TEST_OTHER = testSecretValue
  assert.deepEqual(Object.keys(settings).sort(), Object.keys(ENDPOINT_OPTIONS).sort())
  const [before] = await listEndpoints(db.sql)
  for (const [name, value] of Object.entries(settings))
    if (name !== 'name') assert.notEqual(before?.[name as keyof typeof before], value, name)
  await putEndpoint(db.sql, settings)
  const [after] = await listEndpoints(db.sql)
  const unreviewed = 'host clinic.example → 127.0.0.1:8080; region none → eu; processor none → "Clinic Ltd"'
  const waits = { unreviewed, pausedAt: after?.pausedAt ?? null, pausedReason: `review: ${unreviewed}` }
  assert.ok(waits.pausedAt, 'who gets the data has changed')
  assert.deepEqual(after, { ...before, ...settings, ...waits, version: (before?.version ?? 0) + 1 })
  await putEndpoint(db.sql, {
    ...good,
    class: 'clinic',
    allowInsecure: false,
    horizonMs: HOUR,
    keyWindowMs: 720 * HOUR,
  })
})

test('a policy for statuses names statuses that may fail, and what each means', async () => {
  for (const [statusPolicy, message] of [
    ['[]', /^statusPolicy must be a JSON object of HTTP statuses/],
    ['nonsense', /^statusPolicy must be a JSON object/],
    ['{"200":"retry"}', /^statusPolicy has "200": "retry"; statuses are 300 to 599/],
    ['{"409":"dead"}', /without 409, which has on409/],
    ['{"4xx":"dead"}', /^statusPolicy has "4xx"/],
    ['{"404":"delivered"}', /each means "retry" or "dead"$/],
  ] as const)
    await assert.rejects(putEndpoint(db.sql, { name: 'clinic', statusPolicy }), { code: 'invalid_endpoint', message })
})

test('a refused change leaves the endpoint as it was', async () => {
  const before = await written()
  await assert.rejects(
    putEndpoint(db.sql, { name: 'clinic', horizonMs: 31 * 24 * HOUR }),
    /keyWindowMs 2592000000 is shorter/,
  )
  await assert.rejects(putEndpoint(db.sql, { name: 'clinic', url: 'http://clinic.example/' }), /is http: use https/)
  assert.deepEqual(await written(), before)
})

const urls: readonly (readonly [why: string, url: string, stored: string])[] = [
  ['in capitals', 'HTTPS://Clinic.Example/Hooks', 'https://clinic.example/Hooks'],
  ['without slashes', 'https:clinic.example', 'https://clinic.example/'],
  ['between blanks', '  https://clinic.example/a b ', 'https://clinic.example/a%20b'],
  ['that hides an address', 'https://0x7f.1/', 'https://127.0.0.1/'],
]

for (const [why, url, stored] of urls) {
  test(`a URL ${why} is stored as what will be dialled`, async () => {
    assert.equal((await putEndpoint(db.sql, { ...good, url })).url, stored)
  })
}

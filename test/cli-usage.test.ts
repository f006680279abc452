// Help and wrong usage: all of it comes from the one table of verbs.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { usageOf } from '../src/cli/help.ts'
import { withFlags } from '../src/cli/usage.ts'
import { EXITS, VERBS, type Verb } from '../src/cli/verbs.ts'
import { POLLER_OPTIONS } from '../src/options.ts'
import { testDatabase } from './support/database.ts'
import { runCli } from './support/process.ts'
import { caughtCli } from './support/screen.ts'
import { testSecret, testSecretValue } from './support/secret.ts'

const secret = testSecret()
const db = await testDatabase()
const verbs: readonly Verb[] = VERBS

test('help lists every verb, and nothing at all is wrong usage', async () => {
  const [none, help, alias] = await Promise.all([
    caughtCli(null, []),
    caughtCli(null, ['--help']),
    caughtCli(null, ['help']),
  ])
  assert.deepEqual([none.code, help.code, alias.code], [2, 0, 0])
  assert.equal(none.stdout, help.stdout)
  assert.equal(alias.stdout, help.stdout)
  for (const { name, takes, summary } of verbs) {
    const [found, ...more] = help.stdout.split('\n').filter((line) => line.startsWith(`  ${name} `))
    assert.ok(found?.startsWith(`  ${takes === undefined ? name : `${name} ${takes}`} `), name)
    assert.ok(found?.includes(summary.split(' ').slice(0, 3).join(' ')), name)
    assert.ok(more.length === 0 || verbs.some((verb) => verb.name.startsWith(`${name} `)))
  }
  for (const [code, meaning] of Object.values(EXITS))
    assert.ok(help.stdout.replaceAll('\n', ' ').includes(`${code} ${meaning}`))
})

test('each verb explains itself with an example that it would accept, each of its flags, and its defaults', async () => {
  for (const verb of verbs) {
    const words = verb.name.split(' ')
    const [long, short, help] = await Promise.all([
      caughtCli(null, [...words, '--help']),
      caughtCli(null, [...words, '--nonsense', '-h']),
      caughtCli(null, ['help', ...words]),
    ])
    assert.deepEqual([long.code, long.stderr], [0, ''])
    assert.ok(long.stdout.startsWith(`${usageOf(verb)}\n`))
    assert.deepEqual([short.stdout, help.stdout], [long.stdout, long.stdout])
    assert.ok(verb.examples.length > 0)
    for (const example of verb.examples) {
      assert.ok(long.stdout.includes(`  ${example}\n`))
      assert.match(example, new RegExp(`^outledger ${verb.name}( |$)`))
      const args = [...example.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? '').slice(1)
      // It gets as far as looking for a database, or needs none.
      const { code, stderr } = await caughtCli(null, args)
      if (example.includes(' --print')) assert.equal(code, 0, example)
      else assert.match(stderr, /no database: set DATABASE_URL/, example)
    }
    for (const name of Object.keys(verb.options)) {
      const flag = name.replace(/[A-Z]/g, (c) => `-${c.toLowerCase()}`)
      assert.match(long.stdout, new RegExp(`^  --${flag}( |$)`, 'm'))
      if (flag !== name) assert.doesNotMatch(long.stdout, new RegExp(`\\b${name}\\b`), `${verb.name} says ${name}`)
    }
    for (const line of long.stdout.split('\n')) assert.ok(line.length <= 80 || line.startsWith('  outledger'), line)
  }
})

const usage: [why: string, args: string[], parts: RegExp[]][] = [
  ['an unknown verb', ['migrat'], [/"migrat"/, /did you mean "migrate"/, /--help/]],
  ['an unknown verb of a group', ['endpoint', 'lst'], [/"endpoint lst"/, /did you mean "endpoint list"/]],
  ['half a verb', ['endpoint'], [/: endpoint put, endpoint list, /]],
  ['an option twice', ['list', '--state=open', '--state', 'dead'], [/--state is given twice; give it once/]],
  [
    'an option and its negation',
    ['endpoint', 'put', 'a', '--max-attempts=3', '--no-max-attempts'],
    [/--max-attempts is given twice/],
  ],
  ['an unknown option', ['work', '--leas-ms=3'], [/--leas-ms/, /did you mean "--lease-ms"/]],
  ['an option whose value looks like another option', ['work', '--name', '--slots=3'], [/--name/, /ambiguous/]],
  ['a value that is no number', ['work', '--slots=many'], [/--slots/, /"many"/, /number/]],
  ['a value out of range', ['work', '--slots=0'], [/--slots is 0/, /from 1 to 1000/]],
  [
    'a lease that a request outlives',
    ['work', '--lease-ms=20000'],
    [/--lease-ms 20000/, /--timeout-ms 20000/, /25100/],
  ],
  ['an argument that no verb takes', ['sweep', 'clinic'], [/"clinic"/, /too many/]],
  ['endpoint put without a name', ['endpoint', 'put'], [/endpoint put takes one NAME/]],
  ['endpoint put without a url', ['endpoint', 'put', 'clinic', `--secret=${secret}`], [/--url is required/]],
  [
    'a url that is not https',
    ['endpoint', 'put', 'clinic', '--url=http://clinic.example/', `--secret=${secret}`],
    [/http:/, /https/, /--allow-insecure/],
  ],
  [
    'a url with credentials',
    ['endpoint', 'put', 'clinic', '--url=https://a:word@x/', `--secret=${secret}`],
    [/credentials/, /authorization/],
  ],
  [
    'a secret that is not set',
    ['endpoint', 'put', 'clinic', '--url=https://clinic.example/', '--secret=env:NO_SUCH'],
    [/env:NO_SUCH/, /not set/],
  ],
  [
    'a secret instead of its reference',
    ['endpoint', 'put', 'clinic', '--url=https://clinic.example/', `--secret=${testSecretValue}`],
    [/env:NAME or file:\/path/],
  ],
  ['an option before the verb', ['--no-color', 'status'], [/after the verb/]],
  ['a limit that is taken away', ['list', '--no-limit'], [/--no-limit means nothing: there is always a limit/]],
  [
    'a database URL with a lone %',
    ['status', '--database-url=postgres://u%zz@127.0.0.1:1/x'],
    [/must look like postgres:/],
  ],
  [
    'a key window that retries outlive',
    ['endpoint', 'put', 'clinic', '--url=https://clinic.example/', `--secret=${secret}`, '--key-window-ms=1000'],
    [/--key-window-ms 1000/, /--horizon-ms/],
  ],
]

for (const [why, args, parts] of usage)
  test(`${why} is wrong usage: one line that names the thing and the limit, and exit code 2`, async () => {
    const { code, stdout, stderr } = await caughtCli(db.url, args)
    assert.deepEqual([code, stdout], [2, ''], stderr)
    assert.match(stderr, /^outledger: [^\n]+\n$/, 'one line')
    for (const part of parts) assert.match(stderr, part)
    assert.deepEqual(await db.query('select from outbox.endpoint'), [], 'nothing half-written')
  })

test('under --json an error is JSON too, with its code', async () => {
  const wrong = await caughtCli(null, ['work', '--slots=0', '--json', '--database-url=postgres://u@127.0.0.1:1/x'])
  assert.deepEqual(JSON.parse(wrong.stderr), {
    error: { code: 'invalid_option', message: '--slots is 0; it must be from 1 to 1000' },
  })
  const unknown = await caughtCli(null, ['swep', '--json'])
  assert.equal(JSON.parse(unknown.stderr).error.code, 'usage')
  assert.deepEqual([wrong.stdout, unknown.stdout], ['', ''])
})

test('messages name flags where code names options, and leave values alone', () => {
  const cases: [message: string, wanted: string][] = [
    ['option slots is "leaseMs"; use leaseMs', '--slots is "leaseMs"; use --lease-ms'],
    ['slots 5 exceeds connections 4', '--slots 5 exceeds --connections 4'],
    ['name of the slots', '--name of the slots'],
    ['nothing of ours', 'nothing of ours'],
  ]
  for (const [message, wanted] of cases) assert.equal(withFlags(message, POLLER_OPTIONS), wanted)
  assert.equal(withFlags('option leaseMs', {}), 'option leaseMs')
})

test('a process prints to its two streams and ends with the exit code', async () => {
  const [help, version, wrong] = await Promise.all(
    [['--help'], ['--version'], ['work', '--slots=0', '--database-url=postgres://u@127.0.0.1:1/x']].map((args) =>
      runCli(args),
    ),
  )
  assert.deepEqual([help?.code, help?.stderr], [0, ''])
  assert.match(version?.stdout ?? '', /^\d+\.\d+\.\d+\n$/)
  assert.deepEqual([wrong?.code, wrong?.stdout], [2, ''])
  assert.match(wrong?.stderr ?? '', /^outledger: --slots is 0; .*\n$/)
})

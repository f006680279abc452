// What a log may say: keys, names, codes and numbers. Never a payload, a secret, a URL or a parameter of a statement.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pino } from 'pino'
import { logTo } from '../src/index.ts'
import { enqueue, keysOf, putClinic, testPoller } from './support/clinic.ts'
import { testDatabase } from './support/database.ts'
import { type Answer, raw, reset, silence, startPeer, status } from './support/peer.ts'
import { QUICK, startWorker } from './support/process.ts'
import { startProxy } from './support/proxy.ts'
import { testSecretValue } from './support/secret.ts'
import { until } from './support/until.ts'

const db = await testDatabase()
const peer = await startPeer()

/** A poller in this process that logs into an array. */
function loggedPoller(url: string, given: Parameters<typeof testPoller>[1] = {}) {
  const lines: Record<string, unknown>[] = []
  const poller = testPoller({ url }, given)
  logTo(poller, pino({ level: 'debug' }, { write: (line: string) => lines.push(JSON.parse(line)) }))
  return { poller, lines }
}

test('a run with every kind of failure logs no payload, secret, URL or parameter', async () => {
  process.env.OUTLEDGER_TEST_TOKEN = 'Bearer token-of-the-clinic'
  const url = `${peer.url}/a-path-of-its-own?token=in-the-url`
  await putClinic(db, url, { authorization: 'env:OUTLEDGER_TEST_TOKEN', timeoutMs: 1_000 })
  // A fault of the database whose message and parameters tell everything.
  await db.query(
    `create function refuse() returns trigger language plpgsql as $$ begin
       raise exception using errcode = '23514',
         message = 'refused: ' || (select payload from outbox.delivery where id = new.delivery_id); end $$`,
  )
  await db.query(
    `create trigger refuse before insert on outbox.attempt for each row when (new.http_status = 418) execute function refuse()`,
  )
  const answers: Record<string, Answer> = {
    ...{ delivered: status(200), retried: status(503), dead: status(422), refused: status(418) },
    ...{ reset, silent: silence, cut: raw('HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nX') },
  }
  const keys = Object.keys(answers)
  peer.answer((response, request, socket) => (answers[request.key] ?? status(200))(response, request, socket))
  await enqueue(db, keys, { payload: '{"patient": "PATIENT-4711"}', correlationId: 'corr-1' })
  const withPassword = Object.assign(new URL(db.url), { password: 'word-of-the-database' }).href
  const worker = await startWorker({ url: withPassword }, { ...QUICK, 'log-level': 'debug', slots: 1 })
  await until('six are settled and one is refused', async () => {
    const rows = await db.query('select 1 from outbox.attempt where reason is distinct from $1', 'worker_lost')
    return rows.length >= 6 && worker.log.some(({ code }) => code === '23514')
  })
  await until('terminated connections are noticed', async () => {
    await db.query(
      `select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'outledger' and datname = current_database()`,
    )
    return worker.log.some(({ msg }) => msg === 'database trouble')
  })
  worker.kill('SIGTERM')
  assert.equal((await worker.ended).code, 0)
  assert.deepEqual(worker.complaints, [])
  const all = JSON.stringify(worker.log)
  for (const secret of [
    'PATIENT-4711',
    testSecretValue.slice('whsec_'.length),
    'token-of-the-clinic',
    'word-of-the-database',
    'a-path-of-its-own',
    'in-the-url',
    'refused:',
    'outbox.attempt',
  ])
    assert.ok(!all.includes(secret), `the log contains ${secret}`)
  // What it does say.
  const said = (key: string) => worker.log.filter((line) => line.key === key).map(({ level, msg }) => [level, msg])
  assert.deepEqual(said('delivered'), [[20, 'delivered']])
  assert.deepEqual(said('retried'), [[30, 'attempt failed, will be retried']])
  assert.deepEqual(said('dead'), [[50, 'delivery finally failed']])
  await db.query('drop trigger refuse on outbox.attempt')
  await db.query('delete from outbox.queue')
})

test('each attempt is one line with its key, number, outcome and reason', async () => {
  await putClinic(db, peer.url, { class: 'hospital', timeoutMs: null })
  await enqueue(db, ['one-line'], { correlationId: 'corr-2' })
  peer.next(status(503))
  const { poller, lines } = loggedPoller(db.url)
  await poller.runOnce()
  await poller.stop()
  const [line, ...more] = lines.filter(({ key }) => key === 'one-line')
  assert.deepEqual(more, [])
  const { time, pid, hostname, tookMs, lagMs, ...rest } = line ?? {}
  assert.deepEqual(rest, {
    ...{ level: 30, msg: 'attempt failed, will be retried', key: 'one-line', type: 'eligibility.changed' },
    ...{ endpoint: 'clinic', class: 'hospital', number: 1, outcome: 'unknown', verdict: 'retry' },
    ...{ reason: 'http_503', httpStatus: 503, correlationId: 'corr-2', probe: false, missed: 0 },
  })
})

test('an endpoint that is paused is an error, one that backs off a warning', async () => {
  for (const [name, answer] of Object.entries({ gone: status(410), busy: status(429, { 'retry-after': '60' }) })) {
    await putClinic(db, peer.url, { name, class: 'hospital' })
    await enqueue(db, [`stops-${name}`], { endpoint: name })
    peer.next(answer)
    const { poller, lines } = loggedPoller(db.url)
    await poller.runOnce()
    await poller.stop()
    const { time, pid, hostname, ...line } = lines.find(({ stop }) => stop !== undefined) ?? {}
    const about = { endpoint: name, class: 'hospital' }
    assert.deepEqual(
      line,
      name === 'gone'
        ? {
            ...about,
            level: 50,
            stop: 'paused',
            reason: 'endpoint_rejects: gone',
            forMs: null,
            msg: 'endpoint paused: it rejects',
          }
        : {
            ...about,
            level: 40,
            stop: 'backing off',
            reason: null,
            forMs: 60_000,
            missed: 0,
            msg: 'endpoint backing off',
          },
    )
  }
})

test('trouble is one line a second for each cause, and tells how many it stands for', async () => {
  const proxy = await startProxy(db.url)
  const { poller, lines } = loggedPoller(proxy.url, {
    ...{ pollIntervalMs: 10, heartbeatMs: 50, sweepIntervalMs: 50, purgeIntervalMs: 50 },
  })
  let troubles = 0
  poller.on('database.trouble', () => troubles++)
  await poller.start()
  proxy.refuse()
  const trouble = () => lines.filter(({ msg }) => msg === 'database trouble')
  await until('a few lines', () => trouble().length >= 4)
  await poller.stop()
  const last = new Map<unknown, number>()
  for (const { code, time } of trouble()) {
    const before = last.get(code) ?? Number.NEGATIVE_INFINITY
    // Two clocks: the one that throttles is monotonic.
    assert.ok(Number(time) - before > 900, `two lines about ${code} within ${Number(time) - before} ms`)
    last.set(code, Number(time))
  }
  const missed = trouble().reduce((n, line) => n + Number(line.missed), 0)
  assert.ok(missed > 0)
  assert.ok(trouble().length + missed <= troubles)
  assert.ok(troubles > trouble().length)
})

test('who waits for a secret or a payload is a warning that says what to do, once a second for each endpoint', async () => {
  await db.query('delete from outbox.queue')
  process.env.OUTLEDGER_TEST_GONE = testSecretValue
  for (const name of ['gone-a', 'gone-b']) await putClinic(db, peer.url, { name, secret: 'env:OUTLEDGER_TEST_GONE' })
  delete process.env.OUTLEDGER_TEST_GONE
  for (const endpoint of ['gone-a', 'gone-b']) await enqueue(db, keysOf(endpoint, 3), { endpoint })
  await enqueue(db, ['kept'], { payload: undefined, payloadRef: 'https://store.example/1?signature=in-the-reference' })
  const { poller, lines } = loggedPoller(db.url)
  await poller.runOnce()
  await poller.stop()
  const told = lines
    .filter(({ level }) => level === 40)
    .map(({ msg, reason, endpoint, class: kind, problem }) => [msg, reason, endpoint, kind, problem])
  const unset =
    'secret reference "env:OUTLEDGER_TEST_GONE" cannot be resolved: the variable is not set; set OUTLEDGER_TEST_GONE here and for every poller'
  const loader =
    'payloadRef "https://store.example/1?…": this poller has no loadPayload; pass it to createPoller, or --load-payload to outledger work'
  assert.deepEqual(told.toSorted(), [
    ['deliveries wait for a secret', 'secret_unavailable', 'gone-a', 'default', unset],
    ['deliveries wait for a secret', 'secret_unavailable', 'gone-b', 'default', unset],
    ['deliveries wait for their payload', 'payload_unavailable', 'clinic', 'hospital', loader],
  ])
  await db.query('delete from outbox.queue')
})

test('an outcome that came too late is a warning', async () => {
  await enqueue(db, ['late'])
  const { poller, lines } = loggedPoller(db.url)
  peer.next(async (response, request, socket) => {
    await db.query(
      `update outbox.queue set token = gen_random_uuid(), leased_by = 'somebody else' where token is not null`,
    )
    status(200)(response, request, socket)
  })
  await poller.start()
  const fenced = () => lines.filter(({ msg }) => msg === 'result came after its lease')
  await until('it is told', () => fenced().length > 0)
  await poller.stop()
  assert.deepEqual(
    fenced().map(({ level, number }) => [level, number]),
    [[40, 1]],
  )
})

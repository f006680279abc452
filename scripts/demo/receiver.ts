// The other side, a process with a database of its own: verify, record key and effect in one transaction, answer.
import { createHmac, timingSafeEqual } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import postgres from 'postgres'
import { faultOf } from './faults.ts'

const { RECEIVER_DATABASE_URL = '', RECEIVER_SECRET = '', RECEIVER_KEY_CHECK } = process.env
const SECRET = Buffer.from(RECEIVER_SECRET.replace(/^whsec_/, ''), 'base64')
const TOLERANCE_SECONDS = 300

const sql = postgres(RECEIVER_DATABASE_URL, { max: 10, onnotice: () => {} })
await sql.unsafe(`
  create table inbox (key text primary key, received_at timestamptz not null default clock_timestamp());
  create table effect (id bigint generated always as identity primary key, key text not null, type text not null,
    body json not null, at timestamptz not null default clock_timestamp());
  create table duplicate (id bigint generated always as identity primary key, key text not null,
    at timestamptz not null default clock_timestamp())`)

const server = createServer((request, response) => {
  receive(request, response).catch(() => response.headersSent || response.writeHead(503).end())
})
// The poller keeps its connections open: closing them in between would be one fault more than the demo announces.
server.keepAliveTimeout = 60_000
server.listen(0, '127.0.0.1')
await once(server, 'listening')
console.log(`listening on port ${(server.address() as AddressInfo).port}.`)

async function receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk)
  const body = Buffer.concat(chunks)
  const { headers } = request
  if (!isSigned(headers, body)) {
    response.writeHead(401).end()
    return
  }
  const key = String(headers['webhook-id'])
  const fault = faultOf(key, Number(headers['outledger-attempt']))
  if (fault === 'http_503') {
    response.writeHead(503).end()
    return
  }
  if (fault === 'dropped_before_commit') {
    request.socket.destroy()
    return
  }
  const replayed = await record(key, String(headers['outledger-type']), body)
  if (fault === 'silent_after_commit') return
  if (fault === 'dropped_after_commit') request.socket.destroy()
  else response.writeHead(200, replayed ? { 'idempotent-replayed': 'true' } : {}).end()
}

/** Standard Webhooks: HMAC-SHA256 over `id.timestamp.body`, and a timestamp that is near. */
function isSigned(headers: IncomingHttpHeaders, body: Buffer): boolean {
  const { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signatures } = headers
  if (typeof id !== 'string' || typeof timestamp !== 'string' || typeof signatures !== 'string') return false
  if (!/^\d{1,15}$/.test(timestamp) || Math.abs(Date.now() / 1000 - Number(timestamp)) > TOLERANCE_SECONDS) return false
  const wanted = createHmac('sha256', SECRET).update(`${id}.${timestamp}.`).update(body).digest()
  return signatures.split(' ').some((signature) => {
    const given = Buffer.from(signature.replace(/^v1,/, ''), 'base64')
    return given.length === wanted.length && timingSafeEqual(given, wanted)
  })
}

/** Key and effect commit together or not at all. True if the key had been there: then only the repetition is noted. */
function record(key: string, type: string, body: Buffer): Promise<boolean> {
  return sql.begin(async (tx) => {
    if (RECEIVER_KEY_CHECK === 'on') {
      const { count } = await tx`insert into inbox (key) values (${key}) on conflict do nothing`
      if (count === 0) {
        await tx`insert into duplicate (key) values (${key})`
        return true
      }
    }
    await tx`insert into effect (key, type, body) values (${key}, ${type}, ${body.toString()}::text::json)`
    return false
  })
}

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { after, test } from 'node:test'
import { program } from '../support/process.ts'

// The short form of `npm run ledger-equals-wire`; a failure says its seed, and is repeated with it.
test('after a random run with killed pollers and a broken database line the ledger equals the wire', async (t) => {
  const args = [...program('scripts/ledger-equals-wire/main'), '--attempts', '800']
  const child = spawn(process.execPath, args, {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, DATABASE_URL: process.env.OUTLEDGER_TEST_SERVER },
  })
  after(() => child.kill('SIGTERM'))
  let said = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk) => {
      said += chunk
    })
  const [code] = await once(child, 'close')
  const lines = said.trim().split('\n')
  t.diagnostic(`${lines[0]}; ${lines.at(-3)}; ${lines.at(-2)}`)
  assert.equal(code, 0, said)
  assert.equal(lines.at(-1), 'ledger = wire')
})

import assert from 'node:assert/strict'
import { syncBuiltinESMExports } from 'node:module'
import os from 'node:os'
import { test } from 'node:test'
import { byline } from '../src/person.ts'

test('who has no name here, as in a container under some number, has that number', (t) => {
  const user = process.env.USER
  t.mock.method(os, 'userInfo', () => {
    throw new Error('uv_os_get_passwd returned ENOENT')
  })
  syncBuiltinESMExports()
  try {
    process.env.USER = 'app'
    assert.deepEqual(byline({}), { by: 'app', why: null })
    delete process.env.USER
    assert.deepEqual(byline({}), { by: `uid ${process.getuid?.()}`, why: null })
    assert.deepEqual(byline({ by: 'Ada', why: 'x' }), { by: 'Ada', why: 'x' })
  } finally {
    if (user !== undefined) process.env.USER = user
    t.mock.restoreAll()
    syncBuiltinESMExports()
  }
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { beginning, excerptOf } from '../../src/core/excerpt.ts'

const bytes = (text: string) => Buffer.from(text)

const rows: readonly (readonly [why: string, body: Buffer, wanted: string | null])[] = [
  ['text as it is', bytes('{"error": "déjà vu 🏥"}\r\n\t.'), '{"error": "déjà vu 🏥"}\r\n\t.'],
  ['an empty body', bytes(''), null],
  ['U+0000', bytes('a\0b'), 'a\ufffdb'],
  ['what a terminal would obey', bytes('a\u001b[2Jb\u0007\u007f\u009bc'), 'a\ufffd[2Jb\ufffd\ufffd\ufffdc'],
  // CESU-8: a surrogate as three bytes of its own.
  ['a lone surrogate', Buffer.from([0x61, 0xed, 0xa0, 0x80, 0x62]), 'a\ufffd\ufffd\ufffdb'],
  ['bytes that are no UTF-8', Buffer.from([0xff, 0x61, 0xc3]), '\ufffda\ufffd'],
  ['2,048 bytes', bytes('x'.repeat(2_048)), 'x'.repeat(2_048)],
  ['more than that', bytes('x'.repeat(5_000)), 'x'.repeat(2_048)],
  ['a character that the limit cuts in two', bytes(`${'x'.repeat(2_047)}é`), 'x'.repeat(2_047)],
  ['replacements that are longer than what they replace', Buffer.alloc(2_048), '\ufffd'.repeat(682)],
]

for (const [why, body, wanted] of rows)
  test(`an excerpt of ${why}`, () => {
    const excerpt = excerptOf(body)
    assert.equal(excerpt, wanted)
    assert.ok((excerpt ?? '').isWellFormed() && Buffer.byteLength(excerpt ?? '') <= 2_048)
  })

test('the beginning of a body is gathered over its chunks, and no chunk is held on to for it', () => {
  let kept: Buffer | null = null
  for (const chunk of ['a'.repeat(2_000), 'b'.repeat(40), 'c'.repeat(40), 'd'.repeat(40)])
    kept = beginning(kept, bytes(chunk))
  assert.equal(kept?.toString(), `${'a'.repeat(2_000)}${'b'.repeat(40)}${'c'.repeat(8)}`)
  const chunk = Buffer.from(new ArrayBuffer(65_536))
  assert.notEqual(beginning(null, chunk).buffer, chunk.buffer)
})

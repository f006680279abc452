// Where a statement ends: many people end theirs with a semicolon, and with a comment after it.

// Strings and names are taken whole, for a semicolon or a comment in one is none; '' in a string makes two of it.
const TOKEN =
  /\s+|--[^\n]*|\/\*|;|e'(?:[^'\\]|''|\\[\s\S])*'|'[^']*'|"[^"]*"|\$([a-z_]\w*)?\$[\s\S]*?\$\1\$|[\w$\u0080-\uffff]+|[\s\S]/iy

/** The text up to the semicolon that only blanks, comments and more of them follow, if there is one. */
export function withoutEnd(text: string): string {
  let end: number | null = null
  for (let at = 0; at < text.length; ) {
    TOKEN.lastIndex = at
    const [token = ''] = TOKEN.exec(text) ?? []
    if (token === ';') end ??= at
    else if (!/^(?:\s|--|\/\*)/.test(token)) end = null
    at = token === '/*' ? commentEnd(text, at) : TOKEN.lastIndex
  }
  return end === null ? text : text.slice(0, end)
}

/** Comments nest. */
function commentEnd(text: string, at: number): number {
  const edge = /\/\*|\*\//g
  edge.lastIndex = at
  let depth = 0
  for (let found = edge.exec(text); found !== null; found = edge.exec(text)) {
    depth += found[0] === '/*' ? 1 : -1
    if (depth === 0) return edge.lastIndex
  }
  return text.length
}

// What a driver can make of a URL. It may hold a password, so that nothing repeats it.

/** What is wrong with it, in words that follow "the database URL"; null: nothing. */
export function databaseUrlProblem(url: string): string | null {
  const isUrl = /^postgres(ql)?:\/\//.test(url) && URL.canParse(url) && isDecodable(url)
  return isUrl ? null : 'must look like postgres://user@host:5432/name'
}

/** The driver decodes user and password, and throws at a lone %. */
function isDecodable(url: string): boolean {
  try {
    decodeURIComponent(url)
    return true
  } catch {
    return false
  }
}

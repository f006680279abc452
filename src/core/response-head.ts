// What undici tells raw: response headers as buffers, and how a connection ended.

/** Value of the first header of this name, in lower case, or null. */
export function headerOf(raw: Buffer[], name: string): string | null {
  for (let i = 0; i < raw.length; i += 2) {
    const candidate = raw[i] as Buffer
    // The parser leaves the blanks after a value on it.
    if (candidate.length === name.length && candidate.toString('latin1').toLowerCase() === name)
      return (raw[i + 1] as Buffer).toString('latin1').trim()
  }
  return null
}

/** One word for the error that ended a request. */
export function codeOfSocket(error: Error & { code?: string }): string {
  // undici takes the connection down on a 100 or 101 that nobody asked for, and says so in words only.
  if (error.code === 'UND_ERR_SOCKET')
    return /^bad (upgrade|response)$/.test(error.message) ? 'protocol_error' : 'closed'
  // undici checks the request before it touches a socket: a header value with a line break, say.
  if (error.code === 'UND_ERR_INVALID_ARG') return 'bad_config'
  if (error.code === 'UND_ERR_CONNECT_TIMEOUT') return 'timeout'
  return error.code ?? error.name
}

// Loaded first into every process of the demo: it ends when the demo does, even when the demo is killed.

// The demo holds the other end of this pipe and never writes to it.
process.stdin.on('close', () => process.kill(process.pid, 'SIGTERM'))
process.stdin.on('error', () => {})
process.stdin.resume()
// A socket, since it is a pipe; it alone shall not keep a finished process running.
;(process.stdin as unknown as { unref(): void }).unref()

// Several things at once: when one fails the others are told to stop and waited for, before the failure goes on.
// Nothing is left behind that would work on a database which is being taken down.

/** Like Promise.all; `start` gets a signal that aborts with `outer`, and when one of them fails. */
export async function together<T extends unknown[]>(
  outer: AbortSignal,
  start: (signal: AbortSignal) => { [K in keyof T]: Promise<T[K]> },
): Promise<T> {
  const failed = new AbortController()
  const running = start(AbortSignal.any([outer, failed.signal]))
  for (const one of running) one.catch((error) => failed.abort(error))
  await Promise.allSettled(running)
  // The first failure in time; the ones after it may be its consequences.
  failed.signal.throwIfAborted()
  return Promise.all(running) as Promise<T>
}

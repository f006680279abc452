// Processor time of processes, as Linux keeps it: it says where the time of a delivery goes, whatever else the machine does.
import { readdirSync, readFileSync } from 'node:fs'

export interface Pids {
  readonly receiver: number
  readonly postgres: number
}

export interface Measured {
  readonly count: number
  readonly perSecond: number
  /** Processor microseconds of each process for one delivery; null where /proc does not tell. */
  readonly cpuMicros: Record<string, number> | null
}

/** Milliseconds in a tick: USER_HZ is 100 wherever Node runs. */
const TICK_MS = 10

/** Counts the processor time of processes from its construction on; the children of one count as part of it. */
export class Meter {
  readonly #pids: Record<string, number>
  readonly #before: Record<string, number> | null

  constructor(pids: Record<string, number>) {
    this.#pids = pids
    this.#before = this.#read()
  }

  measured(count: number, perSecond: number): Measured {
    const [before, now] = [this.#before, this.#read()]
    const micros = (name: string) => Math.round((((now?.[name] ?? 0) - (before?.[name] ?? 0)) * 1000) / count)
    const names = Object.keys(this.#pids)
    const cpuMicros = before && now && Object.fromEntries(names.map((name) => [name, micros(name)]))
    return { count, perSecond: Math.round(perSecond), cpuMicros }
  }

  #read(): Record<string, number> | null {
    try {
      const all = readdirSync('/proc')
        .filter((name) => /^\d+$/.test(name))
        .flatMap(processOf)
      // A child with a name of its own is not part of its parent.
      const named = new Set(Object.values(this.#pids))
      const msOf = (pid: number) =>
        all.filter((p) => p.pid === pid || (p.parent === pid && !named.has(p.pid))).reduce((sum, p) => sum + p.ms, 0)
      return Object.fromEntries(Object.entries(this.#pids).map(([name, pid]) => [name, msOf(pid)]))
    } catch {
      return null
    }
  }
}

/** From /proc/PID/stat: behind the name in brackets stand state, parent, … and user and system time as 12th and 13th. */
function processOf(pid: string): { pid: number; parent: number; ms: number }[] {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
    return [{ pid: Number(pid), parent: Number(fields[1]), ms: (Number(fields[11]) + Number(fields[12])) * TICK_MS }]
  } catch {
    return []
  }
}

// The plans that Postgres makes for a verb's statements as our driver sends them: prepared, with a plan for these values or for any.
import { connect, type Executor, type Row, type Value } from '../../src/sql/executor.ts'
import type { TestDatabase } from './database.ts'
import { begin } from './session.ts'

/** How a prepared statement may be planned; after five executions Postgres chooses by itself. */
export const MODES = ['force_custom_plan', 'force_generic_plan'] as const

export interface PlanNode {
  readonly 'Node Type': string
  readonly 'Relation Name'?: string
  readonly 'Parent Relationship'?: string
  readonly 'Subplan Name'?: string
  readonly 'Rows Removed by Filter'?: number
  readonly 'Actual Rows'?: number
  readonly 'Actual Loops'?: number
  readonly Plans?: readonly PlanNode[]
}

const literal = (value: Value): string => (value === null ? 'null' : `'${value.replaceAll("'", "''")}'`)

/** Runs `work` in a transaction that is undone, and returns the plan of each of its statements. */
export async function plansOf(
  db: TestDatabase,
  mode: (typeof MODES)[number],
  work: (db: Executor) => Promise<unknown>,
): Promise<PlanNode[]> {
  const session = await begin(db)
  await session.run(`set local plan_cache_mode = ${mode}`, [])
  const plans: PlanNode[] = []
  await work({
    async run<T = Row>(text: string, values: readonly Value[]) {
      const name = `explained_${plans.length}`
      await session.run(`prepare ${name} as ${text}`, [])
      await session.run('savepoint before', [])
      const given = values.length === 0 ? '' : `(${values.map(literal).join(', ')})`
      const [row] = await session.run<{ 'QUERY PLAN': unknown }>(
        `explain (analyze, timing off, format json) execute ${name} ${given}`,
        [],
      )
      await session.run('rollback to savepoint before', [])
      const json = row?.['QUERY PLAN']
      plans.push((typeof json === 'string' ? JSON.parse(json) : json)[0].Plan)
      return session.run<T>(text, values)
    },
  })
  await session.rollback()
  return plans
}

/** All nodes of a plan; of a CTE the one that makes it, not those that only read it. */
export function nodesOf(plan: PlanNode): PlanNode[] {
  return [plan, ...(plan.Plans ?? []).flatMap(nodesOf)]
}

/** The nodes that this one reads from, CTEs and subselects left out: they are read by others, or once. */
export function inputsOf(plan: PlanNode): PlanNode[] {
  const direct = (plan.Plans ?? []).filter(
    (child) => !/^(?:InitPlan|SubPlan)$/.test(child['Parent Relationship'] ?? ''),
  )
  return direct.flatMap((child) => [child, ...inputsOf(child)])
}

/** So often a statement is planned anew before Postgres settles for one plan, and a poller's connections live long. */
const WARM_UP = 6

/**
 * Milliseconds that each statement of `work` takes in a transaction that is undone, sorted: `times` times, prepared, on one
 * connection of ours that has run it before.
 */
export async function timesOf(
  db: TestDatabase,
  times: number,
  work: (db: Executor) => Promise<unknown>,
): Promise<number[]> {
  const own = connect(db.url, { max: 1, deadlineMs: 60_000 })
  const taken: number[] = []
  const timed: Executor = {
    async run<T = Row>(text: string, values: readonly Value[]) {
      const started = performance.now()
      const rows = await own.run<T>(text, values)
      taken.push(performance.now() - started)
      return rows
    },
  }
  for (let i = 0; i < WARM_UP + times; i++) {
    if (i === WARM_UP) taken.length = 0
    await own.run('begin', [])
    await work(timed)
    await own.run('rollback', [])
  }
  await own.close()
  return taken.sort((a, b) => a - b)
}

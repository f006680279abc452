// Event types with schemas: type and payload are checked before they are written, and typed end to end.
import { payloadText, textProblem } from './core/message.ts'
import { didYouMean } from './core/option.ts'
import { OutledgerError } from './errors.ts'
import { codeOf } from './events.ts'
import type { Message } from './message.ts'
import { type EnqueueResult, enqueue, enqueueMany, enqueueStandalone } from './outbox.ts'
import type { Handle } from './transaction.ts'

interface Issue {
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined
}

type Validated<Output> = { readonly value: Output; readonly issues?: undefined } | { readonly issues: readonly Issue[] }

/** What we use of a Standard Schema (version 1): zod, valibot, arktype and others are one. */
export interface EventSchema<Input = unknown, Output = Input> {
  readonly '~standard': {
    readonly version: 1
    readonly validate: (value: unknown) => Validated<Output> | Promise<Validated<Output>>
    readonly types?: { readonly input: Input; readonly output: Output } | undefined
  }
}

type Schemas = Readonly<Record<string, EventSchema>>
type TypesOf<S extends EventSchema> = NonNullable<S['~standard']['types']>

/** A message of one of the defined types, with the payload that its schema takes. */
export type EventMessage<S extends Schemas> = {
  readonly [T in keyof S & string]: Omit<Message, 'type' | 'payload' | 'payloadRef'> & {
    readonly type: T
    readonly payload: TypesOf<S[T]>['input']
  }
}[keyof S & string]

/** What came in, as its schema puts it out; or what is wrong with it. */
export type CheckedEvent<S extends Schemas, T extends keyof S & string = keyof S & string> =
  | { readonly [K in T]: { readonly ok: true; readonly type: K; readonly payload: TypesOf<S[K]>['output'] } }[T]
  | { readonly ok: false; readonly problem: string }

export interface DefinedEvents<S extends Schemas> {
  /** `outbox.enqueue` for these types only. @throws OutledgerError `invalid_message` also for a payload that does not fit */
  enqueue(tx: Handle, message: EventMessage<S>): Promise<EnqueueResult>
  /** `outbox.enqueueMany` for these types only. */
  enqueueMany(tx: Handle, messages: readonly EventMessage<S>[]): Promise<EnqueueResult[]>
  /** `outbox.enqueueStandalone` for these types only. */
  enqueueStandalone(db: Handle, message: EventMessage<S>): Promise<EnqueueResult>
  /** The receiver's side, for the parsed body: rows written before a type was changed arrive after it, so nothing throws. */
  check<T extends keyof S & string = keyof S & string>(
    type: T | (string & {}),
    payload: unknown,
  ): Promise<CheckedEvent<S, T>>
}

/** How many places one error names. */
const SHOWN = 5

/**
 * Event types and their schemas. The value checked is the payload as it will arrive, after `JSON.stringify`; what is
 * sent is what was given, not what the schema makes of it, so that the receiver's check with the same schema holds.
 */
export function defineEvents<const S extends Schemas>(schemas: S): DefinedEvents<S> {
  for (const [type, schema] of Object.entries(schemas)) {
    const problem = textProblem({ type })
    if (problem !== null) throw new OutledgerError('invalid_option', `event type "${type}" ${problem.problem}`)
    if (typeof schema?.['~standard']?.validate !== 'function')
      throw new OutledgerError(
        'invalid_option',
        `event type "${type}" has no Standard Schema (no "~standard.validate")`,
      )
  }

  const check = async (type: string, payload: unknown) => {
    // Not `schemas[type]` alone: every object has a "constructor".
    const schema = Object.hasOwn(schemas, type) ? schemas[type] : undefined
    if (schema === undefined)
      return { ok: false, problem: `type "${type}" is not defined${didYouMean(type, Object.keys(schemas))}` } as const
    const { issues, ...rest } = await schema['~standard'].validate(payload)
    if (issues === undefined) return { ok: true, type, payload: (rest as { value: unknown }).value } as const
    return { ok: false, problem: `payload of ${type} does not fit its schema ${places(issues)}` } as const
  }

  const checked = async (message: EventMessage<S>, at = ''): Promise<Message> => {
    const fail = (problem: string) => new OutledgerError('invalid_message', `${at}${problem}`)
    const { type, payload } = (message ?? {}) as { type?: unknown; payload?: unknown }
    // What is no message at all, and a type that is no text, get their words from enqueue.
    if (typeof type !== 'string' || !Object.hasOwn(schemas, type)) {
      if (typeof type !== 'string') return message as Message
      throw fail(((await check(type, null)) as { problem: string }).problem)
    }
    const text = payloadText(payload)
    if ('problem' in text) throw fail(`payload ${text.problem}`)
    const result = await check(type, parsed(text.text, fail))
    if (!result.ok) throw fail(result.problem)
    return { ...message, payload: text.text }
  }

  return {
    enqueue: async (tx, message) => enqueue(tx, await checked(message)),
    enqueueMany: async (tx, messages) => {
      if (!Array.isArray(messages)) return enqueueMany(tx, messages as never)
      const all: Message[] = []
      for (const [i, message] of messages.entries()) all.push(await checked(message, `messages[${i}]: `))
      return enqueueMany(tx, all)
    },
    enqueueStandalone: async (db, message) => enqueueStandalone(db, await checked(message)),
    check: (async (type: string, payload: unknown) => {
      if (typeof type !== 'string') return { ok: false, problem: 'type is no text' }
      return check(type, payload).catch((error) => ({
        ok: false,
        problem: `the schema of ${type} threw ${codeOf(error)}`,
      }))
    }) as never,
  }
}

function parsed(text: string, fail: (problem: string) => Error): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // The parser's own message quotes the text.
    throw fail(`payload of ${text.length} characters is not valid JSON`)
  }
}

/** Where, not what: the messages of validators quote the value. Nor is a key of the app's data a name. */
function places(issues: readonly Issue[]): string {
  const shown = issues.slice(0, SHOWN).map(({ path = [] }) => {
    const steps = path.map((step) => {
      const key = typeof step === 'object' ? step.key : step
      return typeof key === 'number' || (typeof key === 'string' && /^[A-Za-z_$][\w$-]{0,63}$/.test(key)) ? key : '…'
    })
    return steps.length === 0 ? 'the whole' : steps.join('.')
  })
  const more = issues.length > SHOWN ? ` and ${issues.length - SHOWN} more` : ''
  return `at ${[...new Set(shown)].join(', ')}${more}`
}

// The public names of outledger.
export {
  type CheckedEvent,
  type DefinedEvents,
  defineEvents,
  type EventMessage,
  type EventSchema,
} from './defined-events.ts'
export {
  type EndpointGiven,
  type EndpointShown,
  listEndpoints,
  type PutOptions,
  putEndpoint,
  showEndpoint,
} from './endpoints.ts'
export { ERRORS, type ErrorCode, OutledgerError } from './errors.ts'
export type { AttemptEvent, EndpointStop, PollerEvents, ReleasedEvent } from './events.ts'
export { defineReconciliation, type Reconciliation } from './expected.ts'
export { logTo } from './log.ts'
export type { ListFilter, Status } from './look.ts'
export { type PurgeRun, purgeOnce, type Swept, sweepOnce } from './maintenance.ts'
export type { Message } from './message.ts'
export { migrate } from './migrate.ts'
export {
  pauseEndpoint,
  type ReviewGiven,
  type RotateGiven,
  removeEndpoint,
  resumeEndpoint,
  reviewEndpoint,
  rotateSecret,
} from './operator.ts'
export type { EnqueueResult } from './outbox.ts'
export * as outbox from './outbox.ts'
export type { LoadAbout, LoadPayload } from './payload.ts'
export type { By, ByWhy } from './person.ts'
export { type Ping, type PingOptions, testEndpoint } from './ping.ts'
export { createPoller, type Poller, type PollerGiven } from './poller.ts'
export { type ReconciliationRun, reconcileOnce } from './reconciler.ts'
export type { ResolveSecret } from './secrets.ts'
export type { EndpointRow, PreviousSecret } from './sql/endpoint.ts'
export type { Changed } from './sql/endpoint-change.ts'
export type { Attempt, Operation, Story } from './sql/get.ts'
export type { Delivery } from './sql/list.ts'
export type { OpenCounts } from './sql/open.ts'
export { attempt, delivery, endpoint, outboxSchema, queue, receipt } from './sql/schema.ts'
export { operation, poller, purgeRun, reconciliation, tombstone, version } from './sql/schema-records.ts'
export { attempts, backlog, dead, deliveries, ended, open, unknown } from './sql/views.ts'
export {
  endpoints,
  lanes,
  operations,
  pollers,
  purges,
  reconciliations,
  review,
  tombstones,
} from './sql/views-records.ts'
export type { Handle } from './transaction.ts'

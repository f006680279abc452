// outledger/testing: for the tests of apps that enqueue. What was enqueued, a poller that runs until nothing is due, a receiver.
export { type Drained, drain } from './testing/drain.ts'
export { type Enqueued, enqueued } from './testing/enqueued.ts'
export { type ReceivedRequest, type Reply, startReceiver, type TestReceiver } from './testing/receiver.ts'

// A worker that dies of one delivery: DEADLY's answer has come, and its process ends before that is written.
import { createPoller } from '../../src/index.ts'

const { DATABASE_URL: databaseUrl = '', DEADLY = '' } = process.env
const poller = createPoller({ databaseUrl, name: 'mortal', pollIntervalMs: 20, heartbeatMs: 200 })
poller.on('attempt', ({ key, outcome }) => {
  if (key === DEADLY && outcome === 'delivered') process.exit(1)
})
process.once('disconnect', () => process.exit(99))
process.once('SIGTERM', () => poller.stop().then(() => process.exit(0)))
await poller.start()

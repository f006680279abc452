// The receiver of the benchmark, a process of its own: reads each request, answers 200, and tells how many it read.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

let received = 0
const server = createServer((request, response) => {
  request.resume()
  request.on('end', () => {
    received++
    response.writeHead(200, { 'content-length': '0' }).end()
  })
})
server.keepAliveTimeout = 0
server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }))
process.on('message', () => process.send?.({ received }))
process.on('disconnect', () => process.exit(0))

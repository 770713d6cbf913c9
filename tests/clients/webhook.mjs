// A receiver of webhooks that verifies with the reference library, and is as unreliable as receivers are: now and
// then it answers 500 or closes the connection, at the first try of an event.
// Says on stdout where it listens, then one line for each event: its id if it took it, or what is wrong.

import { createServer } from 'node:http'
import { Webhook } from 'standardwebhooks'

let webhook
let asked = 0
const refused = new Set()

const server = createServer((request, response) => {
  const chunks = []
  request.on('data', (chunk) => chunks.push(chunk))
  // A sender that is killed sends half of a request.
  request.on('error', () => {})
  request.on('end', () => {
    const body = Buffer.concat(chunks).toString()
    // The test says by which secret to verify, once it has made the webhook.
    if (request.url === '/secret') {
      webhook = new Webhook(body)
      response.end()
      return
    }
    const id = request.headers['webhook-id']
    asked += 1
    if (asked % 11 < 2 && !refused.has(id)) {
      refused.add(id)
      if (asked % 11 === 0) {
        response.statusCode = 500
        response.end('not now')
      } else {
        request.socket.destroy()
      }
      return
    }
    try {
      const event = webhook.verify(body, request.headers)
      console.log(`took ${id} ${event.type}`)
    } catch (error) {
      console.log(`wrong ${id} ${error.message}`)
    }
    response.end('thanks')
  })
})

server.listen(0, '127.0.0.1', () => console.log(`listening ${server.address().port}`))

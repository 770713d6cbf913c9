// A receiver of webhooks that verifies with the reference library, and is as unreliable as receivers are: at the first
// try of an event it now and then answers 500, closes the connection before it answers or amid the answer, answers
// slowly, or hangs, as often as its argument says. A POST to /down takes it down for so many milliseconds; what comes
// to /never is never answered.
// Says on stdout where it listens, then one line for each event: its id if it took it, or what is wrong.

import { createServer } from 'node:http'
import { Webhook } from 'standardwebhooks'

let webhook
let asked = 0
let hangs = Number(process.argv[2])
let slow = 50
const failed = new Set()

// What happens to an event that comes for the first time; `undefined` for what is well.
const trouble = (request, response) => {
  if (asked % 11 === 0) {
    response.statusCode = 500
    return () => response.end('not now')
  }
  if (asked % 22 === 1) return () => request.socket.destroy()
  if (hangs > 0 && asked % 211 === 5) {
    hangs -= 1
    return () => {}
  }
}

const take = (request, response, body) => {
  const id = request.headers['webhook-id']
  asked += 1
  const fails = failed.has(id) ? undefined : trouble(request, response)
  if (fails) {
    failed.add(id)
    fails()
    return
  }
  try {
    const event = webhook.verify(body, request.headers)
    console.log(`took ${id} ${event.type}`)
  } catch (error) {
    console.log(`wrong ${id} ${error.message}`)
  }
  if (asked % 22 === 12 && !failed.has(id)) {
    // It has the event, and its sender cannot know.
    failed.add(id)
    response.writeHead(200, { 'content-length': 6 })
    response.write('tha', () => request.socket.destroy())
  } else if (slow > 0 && asked % 23 === 7) {
    slow -= 1
    response.write('th')
    setTimeout(() => response.end('anks'), 100)
  } else {
    response.end('thanks')
  }
}

// Each listens where it did before.
const listen = (port) => server.listen(port, '127.0.0.1')

const server = createServer((request, response) => {
  const chunks = []
  request.on('data', (chunk) => chunks.push(chunk))
  // A sender that is killed sends half of a request.
  request.on('error', () => {})
  request.on('end', () => {
    const body = Buffer.concat(chunks).toString()
    if (request.url === '/secret') {
      // The test says by which secret to verify, once it has made the webhook.
      webhook = new Webhook(body)
      response.end()
    } else if (request.url === '/down') {
      const { port } = server.address()
      response.end(() => {
        server.close(() => setTimeout(() => listen(port), Number(body)))
        server.closeAllConnections()
      })
    } else if (request.url !== '/never') {
      take(request, response, body)
    }
  })
})

server.once('listening', () => console.log(`listening ${server.address().port}`))
listen(0)

// Verifies a table of signed events with the reference library: an array of {secret, body, headers} on stdin, an
// array of "ok" or what is wrong on stdout.

import { readFileSync } from 'node:fs'
import { Webhook } from 'standardwebhooks'

const verify = ({ secret, body, headers }) => {
  try {
    new Webhook(secret).verify(body, headers)
    return 'ok'
  } catch (error) {
    return error.message
  }
}
console.log(JSON.stringify(JSON.parse(readFileSync(0, 'utf8')).map(verify)))

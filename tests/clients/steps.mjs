// Runs named steps one after the other and prints one line for each, so that a
// failing test shows which promise to the client was broken.

import { setTimeout as delay } from 'node:timers/promises'

/** Collects named steps; `finish` prints the totals and sets the exit code. A step that takes longer than the limit hangs. */
export class Steps {
  #passed = 0
  #failed = 0
  #limitMs

  constructor (limitMs = 30_000) {
    this.#limitMs = limitMs
  }

  /** Runs one step; a failure is counted and the next step still runs. */
  async step (name, body) {
    const begun = Date.now()
    const abort = new AbortController()
    const limit = delay(this.#limitMs, undefined, { signal: abort.signal }).then(() => {
      throw new Error(`no end after ${this.#limitMs} ms`)
    })
    // The timer is cancelled below; its rejection then belongs to nobody.
    limit.catch(() => {})
    try {
      await Promise.race([body(), limit])
      this.#passed += 1
      console.log(`ok - ${name} (${Date.now() - begun} ms)`)
    } catch (error) {
      this.#failed += 1
      console.log(`not ok - ${name}`)
      console.log(indent(describe(error)))
    } finally {
      abort.abort()
    }
  }

  /** Prints `N passed, M failed` and returns the exit code. */
  finish () {
    console.log(`${this.#passed} passed, ${this.#failed} failed`)
    return this.#failed === 0 && this.#passed > 0 ? 0 : 1
  }
}

/** Repeats `probe` until it no longer throws, at most until the deadline. */
export async function eventually (probe, limitMs = 20_000) {
  const end = Date.now() + limitMs
  for (;;) {
    try {
      return await probe()
    } catch (error) {
      if (Date.now() > end) throw error
      await delay(20)
    }
  }
}

/** Reads a required environment variable, or ends with exit code 64. */
export function required (name) {
  const value = process.env[name]
  if (!value) {
    console.error(`${name} is not set (see README.md)`)
    process.exit(64)
  }
  return value
}

function describe (error) {
  if (!(error instanceof Error)) return `thrown: ${JSON.stringify(error)}`
  const cause = error.cause ? `\ncaused by: ${error.cause.code ?? ''} ${error.cause.message ?? error.cause}` : ''
  return `${error.stack ?? error.message}${cause}`
}

function indent (text) {
  return text.split('\n').slice(0, 20).map((line) => `    ${line}`).join('\n')
}

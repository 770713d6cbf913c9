// The vendor's own end-to-end suite, as it lies in the npm package, against a
// running Waymark over TLS.
//
//   node e2e.mjs [--sdk=5.0|--sdk=5.1|--sdk=6] [group…]   (environment: see README.md)
//
// Prints one line of JSON for each test: `{"group", "title", "state"}`, where
// `state` is `passed`, `failed` (with `error`), `pending` (the suite has no body
// for it) or `excluded`. A hook that fails is a failed line of its own, with
// `hook`; each test that was not reached because of it has failed, too.

import { createRequire } from 'node:module'
import { packageName } from './e2e-setup.mjs'

// What Waymark does not have: the suite's groups of it are not run.
const EXCLUDED = ['Reactor']
// The suite's own limit is for a service that is idle.
const LIMIT_MS = 30_000

const require = createRequire(import.meta.url)
const Mocha = require('mocha')
const only = process.argv.slice(2).filter((argument) => !argument.startsWith('--'))
const say = (line) => process.stdout.write(`${JSON.stringify(line)}\n`)

const states = new Map()
const record = (test, state, error) => {
  states.set(test, state)
  const hook = test.type === 'hook' ? { hook: true } : {}
  const said = error ? { error: describe(error) } : {}
  say({ group: groupOf(test), title: test.title, state, ...hook, ...said })
}

/** `as Operator > Accounts`: the describes below the suite's own name. */
function groupOf (test) {
  return test.titlePath().slice(1, -1).join(' > ')
}

/** Failures of 5.x are the error's body, not an Error. */
function describe (error) {
  if (error.message === undefined) return JSON.stringify(error)
  return `${error.message} ${error.stack?.split('\n').find((line) => line.includes('spec.js')) ?? ''}`.trim()
}

function Reporter (runner) {
  runner.on('pass', (test) => record(test, 'passed'))
  runner.on('pending', (test) => record(test, 'pending'))
  runner.on('fail', (test, error) => record(test, 'failed', error))
}

/** Takes out the suites that `isOut` names, with all that is below them. */
function exclude (suite, isOut) {
  suite.suites = suite.suites.filter((child) => {
    if (!isOut(child.title)) {
      exclude(child, isOut)
      return true
    }
    child.eachTest((test) => record(test, 'excluded'))
    return false
  })
}

const mocha = new Mocha({ timeout: LIMIT_MS, reporter: Reporter, ui: 'bdd' })
mocha.addFile(require.resolve(`${packageName}/test/e2e/index.spec.js`))
mocha.loadFiles()
exclude(mocha.suite, (title) => EXCLUDED.includes(title.split(' ')[0]))
if (only.length > 0) mocha.grep(only.join('|'))
// Without `loadFiles` of its own, which would load them again.
mocha.files = []
mocha.run(() => {
  mocha.suite.eachTest((test) => {
    const isMeant = only.length === 0 || mocha.options.grep.test(test.fullTitle())
    if (isMeant && !states.has(test)) record(test, test.pending ? 'pending' : 'failed', { message: 'not reached' })
  })
  const count = (state) => [...states.values()].filter((one) => one === state).length
  say({ passed: count('passed'), failed: count('failed'), pending: count('pending'), excluded: count('excluded') })
  process.exit(count('failed') === 0 && count('passed') > 0 ? 0 : 1)
})

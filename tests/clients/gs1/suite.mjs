// Runs GS1's test suite for resolvers, as it is, against an edge: without a browser and without GS1's server.
//
//     node suite.mjs SUITE LINKSET 127.0.0.1:8081 https://tn.gg/01/09528765123457 …
//
// SUITE is a checkout of https://github.com/gs1/GS1DL-resolver-testsuite, LINKSET one of https://github.com/gs1/linkset. Each URI is
// tested by itself; its host is asked at the address. One line for each test; exit code 0 only when all are passed.

import { readFileSync } from 'node:fs'
import http from 'node:http'
import { createRequire } from 'node:module'
import vm from 'node:vm'

const [suite, linkset, address, ...links] = process.argv.slice(2)
const [host, port] = address.split(':')
const Ajv = createRequire(new URL('../openapi/package.json', import.meta.url))('ajv')

// What the suite loads from GS1's servers. The first is in the checkout; of the second this is what must hold; the third is asked
// only whether a type is in it.
const uri = { type: 'string', pattern: '^https?://' }
const FROM_GS1 = {
  'https://gs1.github.io/linkset/gs1-linkset-schema.json':
    JSON.parse(readFileSync(`${linkset}/gs1-linkset-schema.json`, 'utf8')),
  'https://ref.gs1.org/standards/resolver/description-file-schema': {
    type: 'object',
    required: ['resolverRoot', 'supportedPrimaryKeys'],
    properties: {
      resolverRoot: uri,
      supportedPrimaryKeys: { type: 'array', minItems: 1, items: { const: '01' } },
      supportedLinkType: { type: 'array', items: { properties: { namespace: uri, prefix: { pattern: '^[a-zA-Z_][\\w-]*:$' } } } },
      jsonLdContextLocation: uri,
    },
  },
  'https://ref.gs1.org/voc/data/linktypes': new Proxy({}, { get: (_, name) => (/^[a-z][A-Za-z]+$/.test(String(name)) ? {} : undefined) }),
}

/** Asks the edge, and follows no redirect. */
function ask(url, method = 'GET', headers = {}) {
  const { host: name, pathname, search } = new URL(url)
  const options = { host, port, method, path: pathname + search, headers: { accept: '*/*', ...headers, host: name } }
  return new Promise((resolve, reject) => {
    const request = http.request(options, (response) => {
      const chunks = []
      response.on('data', (chunk) => chunks.push(chunk))
      response.on('end', () => resolve({ response, body: Buffer.concat(chunks).toString('utf8') }))
    })
    request.on('error', reject)
    request.end()
  })
}

/** What GS1's helper on a server answers: the suite cannot see redirects from a browser. */
async function help(parameters) {
  const [test, testVal] = [parameters.get('test'), parameters.get('testVal')]
  const headers = {}
  if (parameters.has('mediaType')) headers.accept = parameters.get('mediaType')
  if (parameters.has('lang')) headers['accept-language'] = parameters.get('lang')
  if (test === 'getLinksetHeaders' || test === 'getLinkset') headers.accept = 'application/linkset+json'
  const { response, body } = await ask(testVal, test === 'getCorsHeaders' ? 'OPTIONS' : 'GET', headers)
  const answered = { uri: testVal, httpCode: response.statusCode, httpMsg: response.statusMessage }
  const results = {
    getHTTPversion: () => `HTTP/${response.httpVersion}`,
    getLinkset: () => JSON.stringify({ ...answered, headers: response.headers, responseBody: encodeURIComponent(body) }),
  }
  return { test, testVal, result: results[test]?.() ?? { ...answered, ...response.headers } }
}

async function load(target, init) {
  const url = typeof target === 'string' ? target : target.url
  const json = (value, ok = true, status = 200) => ({ ok, status, statusText: String(status), json: async () => value })
  if (url in FROM_GS1) return json(FROM_GS1[url])
  const asked = new URL(url)
  if (asked.pathname.endsWith('/tester.php')) return json(await help(asked.searchParams))
  const { response, body } = await ask(url, (init ?? target).method?.toUpperCase())
  return json(body && JSON.parse(body), response.statusCode < 400, response.statusCode)
}

/** As much of a page as the suite writes to. */
function page() {
  const known = new Map()
  class Element {
    style = {}
    set id(id) {
      known.set(id, this)
    }
    appendChild() {}
    prepend() {}
    remove() {}
  }
  for (const id of ['gs1ResolverTests', 'rotatingcircle']) new Element().id = id
  return {
    getElementById: (id) => known.get(id) ?? null,
    createElement: () => new Element(),
    createTextNode: () => new Element(),
  }
}

/** All results for one URI. */
async function run(link) {
  const pending = []
  const fetch = (...target) => {
    const loaded = load(...target)
    pending.push(loaded.catch(() => {}))
    return loaded
  }
  const log = (...said) => process.env.WAYMARK_GS1_LOG && console.error(...said)
  const context = vm.createContext({
    console: { log, error: log },
    document: page(),
    fetch,
    location: { href: 'https://suite.example/?' },
    window: { ajv7: Ajv.default ?? Ajv },
    Headers,
    Request: class {
      constructor(url, init) {
        Object.assign(this, { url, method: init.method })
      }
    },
  })
  for (const file of ['GS1DigitalLinkToolkit.js', 'GS1DigitalLinkResolverTestSuite.js']) {
    vm.runInContext(readFileSync(`${suite}/${file}`, 'utf8'), context, { filename: file })
  }
  await vm.runInContext(`testDL(${JSON.stringify(link)})`, context)
  // Two tests are not awaited by the suite.
  await Promise.all(pending)
  await new Promise((resolve) => setTimeout(resolve, 50))
  return vm.runInContext('resultsArray', context)
}

let failed = 0
for (const link of links) {
  const results = await run(link)
  console.log(`${link}: ${results.length} tests`)
  for (const { id, status, msg } of results) {
    if (status !== 'pass') failed += 1
    console.log(`${status === 'pass' ? 'ok' : 'not ok'} - ${id}: ${msg}`)
  }
  // Else it ended early.
  for (const id of ['rdFile', 'validLinkset', 'defaultTarget', 'specificLinkTypeNotFound']) {
    if (!results.some((result) => result.id === id)) {
      failed += 1
      console.log(`not ok - ${id}: was not run`)
    }
  }
}
process.exit(failed === 0 ? 0 : 1)

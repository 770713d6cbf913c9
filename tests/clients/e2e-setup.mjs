// What the vendor's own end-to-end suite takes for granted: a Node of its time,
// the address of the API, and a key in its own variable.

import Module, { createRequire } from 'node:module'
import './resolve-short-domain.mjs'
import { required } from './steps.mjs'

const version = process.argv.find((argument) => argument.startsWith('--sdk='))?.slice('--sdk='.length)
/** The package whose suite is run: 5.4 goes by its own name, the older ones by an alias. */
export const packageName = version === undefined ? 'evrythng' : `evrythng-${version}`
// Each suite asks for `evrythng`, which is the version that it comes with.
const resolve = Module._resolveFilename
Module._resolveFilename = function (name, ...rest) {
  return resolve.call(this, name === 'evrythng' ? packageName : name, ...rest)
}

// The SDK brings the `fetch` that it was made with where Node has none.
delete globalThis.fetch
const evrythng = createRequire(import.meta.url)('evrythng')
const sdkFetch = globalThis.fetch
const apiUrl = required('WAYMARK_API_URL').replace(/\/+$/, '')
// `api.spec` sends `{}` with each GET, which no `fetch` lets through. The suite of version 6 forgets the address of the
// API each time it sets the SDK up.
globalThis.fetch = (url, options = {}) => {
  const { body, ...rest } = options
  const here = url.replace(/^https:\/\/api\.evrythng\.io\/v2/, apiUrl)
  return sdkFetch(here, /^get$/i.test(options.method ?? 'get') ? rest : options)
}
evrythng.setup({ apiUrl })
process.env.OPERATOR_API_KEY = required('WAYMARK_OPERATOR_KEY')

// The suite is of the first contract, in which users of applications have the rights of their project, and whoever
// registers a user gets the code that activates it.
const apiKey = process.env.OPERATOR_API_KEY
const { account } = await evrythng.api({ url: '/access', apiKey })
await evrythng.api({ url: `/accounts/${account}`, method: 'put', apiKey, data: { userRights: 'open', userRegistration: 'caller' } })
// The suite of version 6 takes from its environment whom it gives access.
process.env.ACCOUNT_ID = account
process.env.OPERATOR_EMAIL = 'colleague@example.com'

// The vendor's own SDK, unmodified, against a running Waymark over TLS.
//
//   node sdk.mjs 5|6        (environment: see README.md)

import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import './resolve-short-domain.mjs'
import { Steps, eventually, required } from './steps.mjs'

const generation = process.argv[2]
if (generation !== '5' && generation !== '6') {
  console.error('usage: node sdk.mjs 5|6')
  process.exit(64)
}
const apiUrl = required('WAYMARK_API_URL').replace(/\/+$/, '')
const shortDomain = required('WAYMARK_SHORT_DOMAIN')
const operatorKey = required('WAYMARK_OPERATOR_KEY')
if (!apiUrl.startsWith('https://')) {
  console.error('WAYMARK_API_URL must be an https URL')
  process.exit(64)
}

const require = createRequire(import.meta.url)
const evrythng = require(generation === '5' ? 'evrythng' : 'evrythng-6')
// Each generation is set up as its own documentation says: 6 speaks to `/v2`.
const settings = { apiUrl: generation === '6' ? `${apiUrl}/v2` : apiUrl, geolocation: false }
if (shortDomain !== 'tn.gg') settings.defaultShortDomain = shortDomain
evrythng.setup(settings)

const ID = /^[abcdefghkmnpqrstwxyABCDEFGHKMNPQRSTUVWXY0-9]{24}$/
const run = `${generation}-${Date.now()}`
const firstTarget = 'https://example.com/first?item={shortId}&thng={thngId}'
const secondTarget = 'https://example.com/second'
// A GTIN of this run: 13 digits of the time and their check digit.
const digits = String(Date.now()).padStart(13, '0').slice(-13)
const sum = [...digits].reduce((sum, digit, at) => sum + Number(digit) * (at % 2 === 0 ? 3 : 1), 0)
const gtin = digits + String((10 - (sum % 10)) % 10)
const steps = new Steps()
const step = (name, body) => steps.step(`sdk ${generation}: ${name}`, body)

/** The error body behind a rejection: 5 throws it, 6 wraps its text in an Error. */
function errorBody (thrown) {
  return thrown instanceof Error ? JSON.parse(thrown.message) : thrown
}

async function rejectsWith (status, call) {
  let answer
  try {
    answer = await call()
  } catch (thrown) {
    const body = errorBody(thrown)
    assert.equal(body?.status, status)
    assert.ok(Array.isArray(body.errors) && body.errors.length > 0, 'errors is empty')
    assert.ok(Number.isInteger(body.code), 'code is not an integer')
    assert.match(body.moreInfo, /^https?:\/\//)
    return
  }
  assert.fail(`expected ${status}, got ${JSON.stringify(answer)}`)
}

const onShortDomain = (request) => evrythng.api({
  apiUrl: `https://${shortDomain}`,
  apiKey: operatorKey,
  headers: { Accept: 'application/json' },
  ...request
})

/** What a scanner gets: the status and the target, not followed. */
async function scan (shortId) {
  const response = await fetch(`https://${shortDomain}/${shortId}`, {
    redirect: 'manual',
    headers: { accept: 'text/html,application/xhtml+xml' }
  })
  await response.arrayBuffer()
  return { status: response.status, location: response.headers.get('location') }
}

async function collect (pages) {
  const found = []
  for await (const page of pages) {
    assert.ok(Array.isArray(page), `a page is no array: ${JSON.stringify(page)}`)
    found.push(page)
  }
  return found
}

/** Every page but the last is full, no row comes twice, the newest is first. */
function checkPages (pages, perPage, ids) {
  assert.ok(pages.length >= Math.ceil(ids.length / perPage), `only ${pages.length} pages`)
  for (const page of pages.slice(0, -1)) assert.equal(page.length, perPage)
  assert.ok(pages.at(-1).length <= perPage)
  const rows = pages.flat()
  assert.equal(new Set(rows.map((row) => row.id)).size, rows.length, 'a row came twice')
  const mine = rows.map((row) => row.id).filter((id) => ids.includes(id))
  assert.deepEqual(mine, ids.toReversed())
}

let operator, product, thng, redirection
const paged = []
const pagedName = `paged ${run} ü+ 100%`

await step('an operator reads itself', async () => {
  operator = new evrythng.Operator(operatorKey)
  await operator.init()
  assert.match(operator.id, ID)
  assert.equal(operator.apiKey, operatorKey)
})

await step('an unknown key is 401', () =>
  rejectsWith(401, () => evrythng.api({ url: '/access', apiKey: 'x'.repeat(80) })))

await step('create a product', async () => {
  const payload = { name: `Shoe ${run}`, customFields: { color: 'red', Serial: Date.now() }, tags: ['a'] }
  product = await operator.product().create(payload)
  assert.match(product.id, ID)
  assert.equal(product.name, payload.name)
  assert.deepEqual(product.customFields, payload.customFields)
  assert.deepEqual(product.tags, payload.tags)
  assert.equal(product.createdAt, product.updatedAt)
})

await step('read the product', async () => {
  const read = await operator.product(product.id).read()
  assert.deepEqual({ ...read }, { ...product })
})

await step('create a Thng of the product', async () => {
  const payload = { name: `Left shoe ${run}`, product: product.id, identifiers: { 'gs1:21': `S${run}` } }
  thng = await operator.thng().create(payload)
  assert.match(thng.id, ID)
  assert.equal(thng.product, product.id)
  assert.deepEqual(thng.identifiers, payload.identifiers)
})

await step('read the Thng', async () => {
  const read = await operator.thng(thng.id).read()
  assert.equal(read.id, thng.id)
  assert.equal(read.name, thng.name)
})

await step('a Thng without a redirection has none', async () => {
  assert.equal(await operator.thng(thng.id).redirection().read(), undefined)
})

await step('create a redirection', async () => {
  redirection = await operator.thng(thng.id).redirection().create({ defaultRedirectUrl: firstTarget })
  assert.match(redirection.shortId, /^[A-Z0-9]{10}$/)
  assert.equal(redirection.shortDomain, shortDomain)
  assert.equal(redirection.evrythngId, thng.id)
  assert.equal(redirection.platformId, thng.id)
  assert.equal(redirection.type, 'thng')
  assert.equal(redirection.defaultRedirectUrl, firstTarget)
  assert.equal(redirection.hits, 0)
  assert.ok(redirection.updatedAt <= Date.now(), 'updatedAt lies in the future')
})

await step('read it back', async () => {
  for (const read of [
    await operator.thng(thng.id).redirection().read(),
    await operator.thng(thng.id).redirection(shortDomain).read()
  ]) {
    assert.equal(read.shortId, redirection.shortId)
    assert.equal(read.defaultRedirectUrl, firstTarget)
    assert.equal(read.hits, 0)
    assert.ok(read.updatedAt <= Date.now(), 'updatedAt lies in the future')
  }
})

await step('the short URL leads to the first target', () => eventually(async () => {
  const location = `https://example.com/first?item=${redirection.shortId}&thng=${thng.id}`
  assert.deepEqual(await scan(redirection.shortId), { status: 307, location })
}))

await step('update the redirection', async () => {
  const updated = await operator.thng(thng.id).redirection().update({ defaultRedirectUrl: secondTarget })
  assert.equal(updated.shortId, redirection.shortId)
  assert.equal(updated.defaultRedirectUrl, secondTarget)
  assert.equal(updated.createdAt, redirection.createdAt)
  assert.ok(updated.updatedAt <= Date.now(), 'updatedAt lies in the future')
  const read = await operator.thng(thng.id).redirection().read()
  assert.equal(read.defaultRedirectUrl, secondTarget)
})

await step('the short URL leads to the second target', () => eventually(async () => {
  assert.deepEqual(await scan(redirection.shortId), { status: 307, location: secondTarget })
}))

await step('list the redirections on the short domain and on the API host', async () => {
  for (const listed of [
    await onShortDomain({ url: '/redirections', params: { evrythngId: thng.id } }),
    await onShortDomain({ url: '/redirections', params: { platformId: thng.id } }),
    await evrythng.api({ url: '/redirections', apiKey: operatorKey, params: { platformId: thng.id, domain: shortDomain } })
  ]) {
    assert.ok(Array.isArray(listed), 'the list is no array')
    assert.deepEqual(listed.map((one) => one.shortId), [redirection.shortId])
  }
})

await step('a bad target is 400 and changes nothing', async () => {
  await rejectsWith(400, () => operator.thng(thng.id).redirection().update({ defaultRedirectUrl: 'javascript:alert(1)' }))
  const read = await operator.thng(thng.id).redirection().read()
  assert.equal(read.defaultRedirectUrl, secondTarget)
})

await step('update makes the redirection of a product that has none', async () => {
  const made = await operator.product(product.id).redirection().update({ defaultRedirectUrl: secondTarget })
  assert.equal(made.type, 'product')
  assert.equal(made.evrythngId, product.id)
  assert.notEqual(made.shortId, redirection.shortId)
  await operator.product(product.id).redirection().delete()
})

await step('delete the redirection', async () => {
  await operator.thng(thng.id).redirection().delete()
  assert.equal(await operator.thng(thng.id).redirection().read(), undefined)
  await rejectsWith(404, () => onShortDomain({ url: `/redirections/${redirection.shortId}` }))
  await eventually(async () => assert.equal((await scan(redirection.shortId)).status, 404))
})

await step('deleting it again does nothing', () => operator.thng(thng.id).redirection().delete())

await step('page through Thngs, two by two', async () => {
  for (let n = 0; n < 5; n += 1) {
    paged.push((await operator.thng().create({ name: pagedName })).id)
  }
  checkPages(await collect(operator.thng().pages({ params: { perPage: 2 } })), 2, paged)
})

await step('page through a filtered list', async () => {
  const params = { perPage: 2, filter: `name=${pagedName}` }
  const pages = await collect(operator.thng().pages({ params }))
  assert.deepEqual(pages.map((page) => page.length), [2, 2, 1])
  checkPages(pages, 2, paged)
})

if (generation === '6') {
  await step('stream Thngs one by one', async () => {
    const seen = []
    await operator.thng().setPerPage(2).stream(async (row) => {
      if (paged.includes(row.id)) seen.push(row.id)
      return seen.length === paged.length
    })
    assert.deepEqual(seen, paged.toReversed())
  })
}

await step('read Thngs by their ids', async () => {
  const rows = await operator.thng().setIds(paged).setWithScopes().read()
  assert.deepEqual(new Set(rows.map((row) => row.id)), new Set(paged))
  for (const row of rows) assert.ok(Array.isArray(row.scopes?.projects), 'scopes are missing')
})

await step('find a Thng by an identifier', async () => {
  const rows = await operator.thng().find({ 'gs1:21': `S${run}` })
  assert.deepEqual(rows.map((row) => row.id), [thng.id])
})

// The SDK encodes the keys and values of such a filter twice.
await step('find a Thng by a filter that is an object', async () => {
  for (const filter of [
    { 'identifiers.gs1:21': `S${run}` },
    { name: `Left shoe ${run}` },
    { name: `Left shoe ${run}`, 'identifiers.gs1:21': `S${run}` }
  ]) {
    const rows = await operator.thng().setFilter(filter).read()
    assert.deepEqual(rows.map((row) => row.id), [thng.id], JSON.stringify(filter))
  }
})

for (const kind of ['thng', 'product']) {
  await step(`update a ${kind}`, async () => {
    const entity = kind === 'thng' ? thng : product
    const updated = await operator[kind](entity.id).update({ tags: ['updated'] })
    assert.equal(updated.id, entity.id)
    assert.equal(updated.name, entity.name)
    assert.deepEqual(updated.tags, ['updated'])
    assert.ok(updated.updatedAt > updated.createdAt, 'updatedAt did not move')
    // An entity sends back every member it was given, the read-only ones too.
    updated.description = `changed ${run}`
    const again = await updated.update()
    assert.equal(again.description, `changed ${run}`)
    assert.equal(again.createdAt, entity.createdAt)
  })
}

if (generation === '6') {
  await step('commission a Thng, read its state, decommission it', async () => {
    const factory = `F${run}`
    const place = await operator.place().create({ name: 'Plant', identifiers: { factory }, latitude: 47.5, longitude: 8.5 })
    const serial = `C${run}`
    const item = await operator.thng().create({
      name: 'Right shoe', identifiers: { 'gs1:21': serial }, customFields: { factory }
    })
    await operator.product(product.id).update({ identifiers: { 'gs1:01': gtin } })
    const one = operator.thng(`gs1:21:${serial}`)
    assert.equal((await one.commissionState().read()).state, 'not_commissioned')
    const said = {
      product: `gs1:01:${gtin}`,
      location: { place: place.id },
      occurredAt: '2026-11-22T08:15:30+01:00',
      purchaseOrder: 'PO-1',
      factoryMetadata: { factory }
    }
    await rejectsWith(409, () => one.action('commissions').create(said))
    await item.action('encodings').create({})
    const commission = await one.action('commissions').create(said)
    assert.equal(commission.type, 'commissions')
    assert.equal(commission.thng, item.id)
    assert.equal(commission.product, product.id)
    assert.equal(commission.customFields.factory, factory)
    assert.equal(commission.customFields.purchaseOrder, 'PO-1')
    assert.equal(commission.location.position.type, 'Point')
    assert.equal((await operator.thng(item.id).commissionState().read()).state, 'commissioned')
    assert.equal((await one.read()).product, product.id)
    const listed = await operator.thng(item.id).action('commissions').read()
    assert.deepEqual(listed.map((action) => action.id), [commission.id])
    const states = await evrythng.api({
      url: '/thngs/commissionStateList',
      method: 'post',
      apiKey: operatorKey,
      data: [{ thngIdentifier: `gs1:21:${serial}`, productIdentifier: `gs1:01:${gtin}` }]
    })
    assert.deepEqual(states.map((entry) => entry.state), ['commissioned'])
    const { product: _, purchaseOrder: __, ...withdrawal } = said
    const decommission = await operator.thng(item.id).action('decommissions').create(withdrawal)
    assert.equal(decommission.type, 'decommissions')
    assert.equal((await one.commissionState().read()).state, 'decommissioned')
    await rejectsWith(409, () => one.action('decommissions').create(withdrawal))
    await operator.thng(item.id).delete()
    await operator.place(place.id).delete()
  })
}

await step('delete the Thngs and the product', async () => {
  for (const id of [...paged, thng.id]) await operator.thng(id).delete()
  await operator.product(product.id).delete()
  await rejectsWith(404, () => operator.thng(thng.id).read())
  await rejectsWith(404, () => operator.product(product.id).read())
})

process.exit(steps.finish())

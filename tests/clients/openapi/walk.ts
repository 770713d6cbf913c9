// The same walk by the clients of two generators: what they send is typed by the document, and so is what comes back.

import assert from 'node:assert/strict'
import createClient from 'openapi-fetch'
import type { paths } from './openapi-typescript'
import { createClient as createHeyClient, createConfig } from './hey-api/client'
import * as hey from './hey-api/sdk.gen'

const api = process.env.WAYMARK_API_URL ?? ''
const key = process.env.WAYMARK_OPERATOR_KEY ?? ''
const target = 'https://example.com/?item={shortId}'

/** What was read back at the end, and the code as an image. */
interface Walked { target?: string; type?: string; name?: string; product?: string; names: string[]; image?: Blob }

/** The client of openapi-fetch over the types of openapi-typescript. */
async function walkByTypes (): Promise<Walked> {
  const client = createClient<paths>({ baseUrl: api, headers: { Authorization: key, Accept: 'application/json' } })
  const product = await client.POST('/products', { body: { name: 'Typed bag', tags: ['typed'], customFields: { a: { b: 1 } } } })
  assert(product.data, JSON.stringify(product.error))
  const thng = await client.POST('/thngs', { body: { name: 'Typed bag 1', product: product.data.id } })
  assert(thng.data, JSON.stringify(thng.error))
  const made = await client.POST('/redirections', {
    body: { platformId: thng.data.id, defaultRedirectUrl: target }, params: { header: { 'Idempotency-Key': 'typed' } }
  })
  assert.equal(made.response.status, 201)
  const found = made.data as { shortId: string }
  const path = { shortId: found.shortId }
  const read = await client.GET('/redirections/{shortId}', { params: { path } })
  const item = read.data as { defaultRedirectUrl: string, type: string }
  const again = await client.GET('/thngs/{id}', { params: { path: { id: thng.data.id } } })
  const list = await client.GET('/products', { params: { query: { filter: 'tags=typed', perPage: 5 } } })
  const image = await client.GET('/redirections/{shortId}', {
    params: { path: { shortId: `${found.shortId}.qr` }, query: { w: 300, ecl: 'Q' } },
    headers: { Accept: 'image/png' }, parseAs: 'blob'
  })
  const missing = await client.GET('/thngs/{id}', { params: { path: { id: 'U'.repeat(24) } } })
  assert.equal(missing.error?.status, 404)
  return {
    target: item.defaultRedirectUrl, type: item.type, name: again.data?.name, product: again.data?.product ?? undefined,
    names: (list.data ?? []).map((one) => one.name), image: image.data as Blob
  }
}

/** The client of hey-api. */
async function walkByHeyApi (): Promise<Walked> {
  const client = createHeyClient(createConfig({ baseUrl: api, auth: key, headers: { Accept: 'application/json' } }))
  // An array of bodies is answered by an array of results, so the generator knows only that there is an answer.
  const bag = await hey.createProduct({ client, body: { name: 'Typed bag', tags: ['hey'] }, throwOnError: true })
  const product = { data: bag.data as { id: string } }
  const one = await hey.createThng({ client, body: { name: 'Typed bag 1', product: product.data.id }, throwOnError: true })
  const thng = { data: one.data as { id: string } }
  const made = await hey.createRedirection({
    client, body: { platformId: thng.data.id, defaultRedirectUrl: target }, throwOnError: true
  })
  const found = made.data as { shortId: string }
  const read = await hey.readRedirection({ client, path: { shortId: found.shortId }, throwOnError: true })
  const item = read.data as { defaultRedirectUrl: string, type: string }
  const again = await hey.readThng({ client, path: { id: thng.data.id }, throwOnError: true })
  const list = await hey.listProducts({ client, query: { filter: 'tags=hey', perPage: 5 }, throwOnError: true })
  const image = await hey.readRedirection({
    client, path: { shortId: `${found.shortId}.qr` }, query: { w: 300, ecl: 'Q' }, headers: { Accept: 'image/png' },
    parseAs: 'blob', throwOnError: true
  })
  const missing = await hey.readThng({ client, path: { id: 'U'.repeat(24) } })
  assert.equal((missing.error as { status?: number }).status, 404)
  return {
    target: item.defaultRedirectUrl, type: item.type, name: again.data.name, product: again.data.product ?? undefined,
    names: list.data.map((one) => one.name), image: image.data as unknown as Blob
  }
}

async function main (): Promise<void> {
  for (const [name, walk] of Object.entries({ 'openapi-typescript': walkByTypes, 'hey-api': walkByHeyApi })) {
    const walked = await walk()
    assert.equal(walked.target, target)
    assert.equal(walked.type, 'thng')
    assert.equal(walked.name, 'Typed bag 1')
    assert(walked.product)
    assert.deepEqual(walked.names, ['Typed bag'])
    assert.equal(walked.image?.type, 'image/png')
    console.log(`ok - ${name}`)
  }
}

main().catch((error: unknown) => {
  console.error(error)
  process.exit(1)
})

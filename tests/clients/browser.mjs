// Headless Chromium against a running Waymark: a page load follows the short
// URL, an `<img>` shows the code, and neither ever gets the other's answer.
//
//   node browser.mjs        (environment: see README.md)

import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import tls from 'node:tls'
import { chromium } from 'playwright-core'
import { Steps, required } from './steps.mjs'

const apiUrl = required('WAYMARK_API_URL').replace(/\/+$/, '')
const operatorKey = required('WAYMARK_OPERATOR_KEY')
const shortDomain = process.env.WAYMARK_SHORT_DOMAIN
const edgeTlsPort = process.env.WAYMARK_EDGE_TLS_PORT
const edgeTlsHost = process.env.WAYMARK_EDGE_TLS_HOST ?? '127.0.0.1'

const steps = new Steps()
const step = (name, body) => steps.step(`browser: ${name}`, body)

/** The pages that redirections lead to, and one that holds an `<img>`. */
function startSite () {
  const server = createServer((request, response) => {
    const url = new URL(request.url, 'http://site')
    const pages = {
      '/first': '<title>first</title><h1>first</h1>',
      '/second': '<title>second</title><h1>second</h1>',
      '/img': `<title>img</title><img id="code" src="${url.searchParams.get('src')}">`,
      '/link': `<title>link</title><a id="go" href="${url.searchParams.get('src')}">go</a>`
    }
    const body = pages[url.pathname]
    response.statusCode = body ? 200 : 404
    response.setHeader('content-type', 'text/html; charset=utf-8')
    response.setHeader('cache-control', 'no-store')
    response.end(body ? `<!doctype html>${body}` : 'not here')
  })
  return new Promise((resolve) => server.listen(0, '127.0.0.1', () => {
    resolve({ server, base: `http://127.0.0.1:${server.address().port}` })
  }))
}

async function api (method, path, body) {
  const response = await fetch(`${apiUrl}${path}`, {
    method,
    headers: {
      authorization: operatorKey,
      accept: 'application/json',
      ...(body ? { 'content-type': 'application/json' } : {})
    },
    body: body && JSON.stringify(body)
  })
  const text = await response.text()
  assert.ok(response.ok, `${method} ${path}: ${response.status} ${text}`)
  return text ? JSON.parse(text) : undefined
}

/**
 * The hash by which Chromium trusts the edge's certificate. Node checks the
 * chain first, with the development CA. A mere "ignore errors" would not do:
 * Chromium keeps nothing in its cache that came over a connection with an error.
 */
async function edgeKeyHash () {
  const socket = tls.connect({ host: edgeTlsHost, port: Number(edgeTlsPort), servername: shortDomain })
  await once(socket, 'secureConnect')
  const key = socket.getPeerX509Certificate().publicKey.export({ type: 'spki', format: 'der' })
  socket.destroy()
  return createHash('sha256').update(key).digest('base64')
}

/** Loads an image of the short URL in a page of ours and returns what was shown. */
async function showImage (page, shortUrl) {
  await page.goto(`${site.base}/img?src=${encodeURIComponent(shortUrl)}`)
  return page.evaluate(async () => {
    const image = document.getElementById('code')
    await image.decode()
    return { width: image.naturalWidth, height: image.naturalHeight, shown: image.currentSrc }
  })
}

/** The page now shown is a document at `target`, not an image. */
async function checkLanded (page, target, title) {
  assert.equal(page.url(), target)
  assert.equal(await page.title(), title)
  assert.equal(await page.evaluate(() => document.contentType), 'text/html')
  assert.equal(await page.evaluate(() => document.images.length), 0)
}

const site = await startSite()
const args = [
  '--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
  '--disable-background-networking', '--disable-component-update', '--disable-sync'
]
if (shortDomain && edgeTlsPort) {
  args.push(`--host-resolver-rules=MAP ${shortDomain}:443 ${edgeTlsHost}:${edgeTlsPort}`)
  args.push(`--ignore-certificate-errors-spki-list=${await edgeKeyHash()}`)
}
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  args
})
console.log(`# chromium ${browser.version()}`)
// Our own scripts must run on the edge's pages, whatever policy these state.
const context = await browser.newContext({ bypassCSP: true })
const page = await context.newPage()

// Every answer of the edge, with the kind of request it was for.
const answers = []
let shortUrl
page.on('response', (response) => {
  if (shortUrl && response.url().startsWith(shortUrl)) {
    answers.push({
      kind: response.request().resourceType(),
      status: response.status(),
      type: response.headers()['content-type'] ?? ''
    })
  }
})

let thng, redirection
await step('a Thng with a redirection exists', async () => {
  // The pages that it leads to are on this machine, which an account has to allow.
  const { account } = await api('GET', '/access')
  await api('PUT', `/accounts/${account}`, { privateTargets: true })
  thng = await api('POST', '/thngs', { name: 'browser' })
  redirection = await api('POST', '/redirections', {
    platformId: thng.id,
    defaultRedirectUrl: `${site.base}/first`,
    ...(shortDomain ? { shortDomain } : {})
  })
  shortUrl = redirection.shortUrl
  assert.match(shortUrl, /^https?:\/\//)
})

await step('a page load lands on the target', async () => {
  const response = await page.goto(shortUrl)
  await checkLanded(page, `${site.base}/first`, 'first')
  const hop = response.request().redirectedFrom()
  assert.equal(hop.url(), shortUrl)
  assert.equal((await hop.response()).status(), 307)
})

await step('an <img> shows the code, 256 pixels wide', async () => {
  assert.deepEqual(await showImage(page, shortUrl), { width: 256, height: 256, shown: shortUrl })
})

await step('a page load after the image still lands on the target', async () => {
  await page.goto(shortUrl)
  await checkLanded(page, `${site.base}/first`, 'first')
})

await step('a change of the target is followed', async () => {
  await api('PUT', `/redirections/${redirection.shortId}?wait=edges${shortDomain ? `&domain=${shortDomain}` : ''}`, {
    defaultRedirectUrl: `${site.base}/second`
  })
  await page.goto(shortUrl)
  await checkLanded(page, `${site.base}/second`, 'second')
})

await step('a clicked link and a reload land on the target', async () => {
  await page.goto(`${site.base}/link?src=${encodeURIComponent(shortUrl)}`)
  await page.click('#go')
  await page.waitForURL(`${site.base}/second`)
  await checkLanded(page, `${site.base}/second`, 'second')
  await page.reload()
  await checkLanded(page, `${site.base}/second`, 'second')
})

await step('the image is still the image', async () => {
  assert.deepEqual(await showImage(page, shortUrl), { width: 256, height: 256, shown: shortUrl })
})

await step('an SVG by its suffix is shown in an <img>', async () => {
  const shown = await showImage(page, `${shortUrl}.svg?w=300`)
  assert.equal(shown.width, 300)
})

await step('an unknown short id is a small page', async () => {
  const unknown = new URL('/ZZZZ0000ZZ', shortUrl).href
  const response = await page.goto(unknown)
  assert.equal(response.status(), 404)
  assert.equal(await page.evaluate(() => document.contentType), 'text/html')
})

await step('a cached image of the same site is no answer to a page load', async () => {
  await page.goto(new URL('/ZZZZ0000ZZ', shortUrl).href)
  const width = await page.evaluate(async (src) => {
    const image = new Image()
    image.src = src
    await image.decode()
    return image.naturalWidth
  }, shortUrl)
  assert.equal(width, 256)
  await page.goto(shortUrl)
  await checkLanded(page, `${site.base}/second`, 'second')
})

await step('no page load ever got an image, no <img> ever a redirect', async () => {
  const documents = answers.filter((answer) => answer.kind === 'document')
  const images = answers.filter((answer) => answer.kind === 'image')
  assert.ok(documents.length >= 4, `only ${documents.length} page loads were seen`)
  assert.ok(images.length >= 2, `only ${images.length} images were seen`)
  for (const answer of documents) {
    assert.equal(answer.status, 307)
    assert.ok(!answer.type.startsWith('image/'), `a page load got ${answer.type}`)
  }
  for (const answer of images) {
    assert.ok([200, 304].includes(answer.status), `an <img> got ${answer.status}`)
    assert.match(answer.type, /^image\//)
  }
})

await step('the Thng and its redirection are removed', async () => {
  await api('DELETE', `/redirections/${redirection.shortId}${shortDomain ? `?domain=${shortDomain}` : ''}`)
  await api('DELETE', `/thngs/${thng.id}`)
})

await browser.close()
site.server.close()
site.server.closeAllConnections()
process.exit(steps.finish())

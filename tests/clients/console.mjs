// The console in headless Chromium against a running Waymark: what each screen shows is what the API says.
//
//   node console.mjs        (environment: see README.md)

import assert from 'node:assert/strict'
import { mkdirSync, readFileSync } from 'node:fs'
import http from 'node:http'
import { createRequire } from 'node:module'
import { chromium } from 'playwright-core'
import { linkChanges } from './console-changes.mjs'
import { shortDomains } from './console-domains.mjs'
import { printing } from './console-print.mjs'
import { privacy } from './console-privacy.mjs'
import { Steps, eventually, required } from './steps.mjs'

const link = required('WAYMARK_CONSOLE_LINK')
const apiUrl = required('WAYMARK_API_URL').replace(/\/+$/, '')
const operatorKey = required('WAYMARK_OPERATOR_KEY')
/** Where pictures are kept, if somebody wants to look at them. */
const pictures = process.env.WAYMARK_PICTURES
if (pictures) mkdirSync(pictures, { recursive: true })
const root = link.split('#')[0]
const PASSWORD = 'a long sentence is best'
const PHONE = 'Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 Mobile/15E148 Safari/604.1'
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

// A step that opens every screen takes a while on a machine that does other work.
const steps = new Steps(180_000)
const step = (name, body) => steps.step(`console: ${name}`, body)

async function api (method, path, body, expected = (status) => status < 300) {
  const response = await fetch(`${apiUrl}${path}`, {
    method,
    headers: { authorization: operatorKey, accept: 'application/json', ...(body ? { 'content-type': 'application/json' } : {}) },
    body: body && JSON.stringify(body)
  })
  const text = await response.text()
  assert.ok(expected(response.status), `${method} ${path}: ${response.status} ${text}`)
  return text ? JSON.parse(text) : undefined
}

/** Somebody with a role, who signs in by a password. */
async function person (email, role) {
  const { account } = await api('GET', '/access')
  const { invitationCode } = await api('POST', `/accounts/${account}/operatorAccess`, { email, role })
  await api('POST', '/invitations', { code: invitationCode, password: PASSWORD, firstName: email.split('@')[0] })
  return email
}

/** Something that a step brings about later, for a route that waits for it. */
function later () {
  let resolve
  const promise = new Promise((done) => { resolve = done })
  return { promise, resolve }
}

/** A scan from somewhere, as the proxy passes it on that the product trusts. */
const scan = (shortUrl, from, agent = PHONE) => new Promise((resolve, reject) => {
  const headers = { 'user-agent': agent, 'x-forwarded-for': from }
  http.get(shortUrl, { headers, localAddress: '127.0.0.2' }, (response) => response.resume().on('end', () => resolve(response))).on('error', reject)
})

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  args: ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync']
})
console.log(`# chromium ${browser.version()}`)

// What must not be: a request to another host, a word in the log of the page, a refusal that nobody asked for.
const foreign = []
const home = new Set([new URL(root).origin])
const logged = []
const refused = []
/** Refusals that a step brings about on purpose. */
let expected = () => false

async function visitor ({ width = 1440, height = 900, scheme = 'light', locale = 'en-GB', storageState } = {}) {
  const context = await browser.newContext({ storageState, viewport: { width, height }, colorScheme: scheme, locale, timezoneId: 'Europe/Berlin', acceptDownloads: true })
  await context.grantPermissions(['clipboard-read', 'clipboard-write'])
  // What is under way is asked for each 1 to 3 s: here five times as often.
  await context.addInitScript(() => {
    const real = globalThis.setInterval
    globalThis.setInterval = (run, ms) => real(run, ms >= 1_000 && ms <= 3_000 ? ms / 5 : ms)
  })
  const page = await context.newPage()
  page.setDefaultTimeout(20_000)
  page.on('request', (request) => {
    if (!home.has(new URL(request.url()).origin)) foreign.push(request.url())
  })
  page.on('response', (response) => {
    if (response.status() >= 400 && !expected(response.status(), response.url())) refused.push(`${response.status()} ${response.url()}`)
  })
  page.on('console', (message) => {
    if (!['error', 'warning'].includes(message.type())) return
    // No script runs in the preview of a page: neither does one of Playwright.
    if (message.text().startsWith("Blocked script execution in 'about:srcdoc'")) return
    const status = Number(message.text().match(/status of (\d+)/)?.[1] ?? (message.text().includes('net::ERR') ? 0 : NaN))
    if (!expected(status, message.location().url)) logged.push(message.text())
  })
  page.on('pageerror', (error) => logged.push(String(error)))
  return { context, page }
}

/** Sessions that were begun: a password is checked once for each person. */
const sessions = new Map()

/** Runs a step in which refusals of some kind are meant. */
async function allowing (which, body) {
  expected = which
  try { await body() } finally { expected = () => false }
}

async function settled (page) {
  await page.waitForFunction(() => document.querySelector('main h1') && !document.querySelector('.skeleton') && !document.querySelector('[aria-busy=true]'))
  // A chart is drawn by a module of its own.
  await page.waitForFunction(() => [...document.querySelectorAll('.plot')].every((plot) => plot.querySelector('canvas')))
}

/** Moves to another screen as a click on a link of the page does; false where the page shows no screen. */
const move = (page, href) => page.evaluate((href) => {
  const before = document.querySelector('main#main > *')
  if (!before) return false
  before.dataset.before = ''
  const link = Object.assign(document.createElement('a'), { href })
  document.body.append(link)
  link.click()
  link.remove()
  return true
}, href)

/** Loads the page itself. */
async function load (page, path) {
  await page.goto(new URL(path, root).href)
  await settled(page)
}

/** Opens a screen: within the page, which takes a fraction of a load, unless the path is the same or the screen keeps what was typed. */
async function open (page, path) {
  const [url, here] = [new URL(path, root), new URL(page.url())]
  const isWithin = here.href.startsWith(root) && here.pathname !== url.pathname && !/\/(import|order)$/.test(url.pathname)
  if (!isWithin || !(await move(page, url.href))) return await load(page, path)
  // The screen before stays until this one is loaded.
  await page.waitForFunction(() => !document.querySelector('main > [data-before]'))
  await settled(page)
}

/** What another width or scheme can break; everything else is the same in both. */
const LOOKS = ['color-contrast', 'link-in-text-block', 'scrollable-region-focusable', 'button-name', 'link-name', 'label', 'empty-table-header']
const accessible = async (page, what, rules) => {
  if (!(await page.evaluate(() => 'axe' in globalThis))) await page.evaluate(axe)
  const { violations } = await page.evaluate((rules) => globalThis.axe.run(document, {
    resultTypes: ['violations'], iframes: false, ...(rules && { runOnly: { type: 'rule', values: rules } })
  }), rules)
  const said = violations.map((one) => `${one.id}: ${one.nodes.map((node) => `${node.target} ${node.failureSummary}`).join('; ')}`)
  assert.deepEqual(said, [], what)
}

/** Nothing is wider than the window. */
const fits = (page, what) => eventually(async () => {
  const [inner, outer] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth])
  assert.ok(inner <= outer, `${what}: ${inner} px in ${outer} px`)
}, 2_000)

const shot = async (page, name) => {
  if (pictures) await page.screenshot({ path: `${pictures}/${name}.png`, fullPage: true })
}

let product, item, code, itemCode
const owner = await visitor()
const { page } = owner

await step('the link of the start signs in once, and an empty account says what to do next', async () => {
  await page.goto(link)
  await settled(page)
  assert.ok(!page.url().includes('sign-in'), 'the code stays in no address')
  await page.getByRole('heading', { name: 'No scans yet' }).or(page.getByText('No scans yet')).first().waitFor()
  assert.match(await page.locator('pre').first().textContent(), /curl .*\/redirections/)
  await shot(page, 'empty-overview')
  const again = await visitor()
  await allowing((status) => status === 401, async () => {
    await again.page.goto(link)
    await again.page.getByText('was used or has expired').waitFor()
    await shot(again.page, 'sign-in')
    await accessible(again.page, 'sign-in')
  })
  await again.context.close()
  // A link that is pasted where the console is open already: only the part behind `#` differs.
  const pasted = await visitor()
  await allowing((status) => status === 401, async () => {
    await pasted.page.goto(root)
    await pasted.page.getByLabel('E-mail address').waitFor()
    assert.equal(await pasted.page.getByText('was used or has expired').count(), 0)
    await pasted.page.evaluate((hash) => { location.hash = hash }, new URL(link).hash)
    await pasted.page.getByText('was used or has expired').waitFor()
    assert.ok(!pasted.page.url().includes('sign-in'), pasted.page.url())
  })
  await pasted.context.close()
})

await step('a link that failed because nothing answered is tried again', async () => {
  const { context, page } = await visitor()
  await allowing((status) => [0, 401, 503].includes(status), async () => {
    await page.route(/api\/session\/link/, (route) => route.fulfill({ status: 503, json: { status: 503, code: 50301, errors: ['Try later.'] } }), { times: 1 })
    await page.goto(link)
    await page.getByText('Waymark has a fault').waitFor()
    assert.equal(await page.getByText('was used or has expired').count(), 0)
    await page.getByRole('button', { name: 'Try again' }).click()
    await page.getByText('was used or has expired').waitFor()
  })
  await context.close()
})

await step('where the server has a provider of identities, one signs in by it', async () => {
  const { context, page } = await visitor()
  await page.route(root, async (route) => {
    const response = await route.fetch()
    await route.fulfill({ response, body: (await response.text()).replace('<base ', '<base data-provider ') })
  })
  await page.goto(root)
  await page.getByLabel('E-mail address').waitFor()
  // This server has none: that it says so shows that its own page was opened, and none of the console.
  await allowing((status) => status === 404, async () => {
    await page.locator('[data-test=provider]').click()
    await page.waitForURL(/\/console\/api\/oidc\/begin\?returnTo=%2Fconsole%2F/)
  })
  await page.unrouteAll()
  await page.goto(root)
  await page.getByLabel('E-mail address').waitFor()
  assert.equal(await page.locator('[data-test=provider]').count(), 0)
  await context.close()
})

await step('there are products, items, links and scans from several countries', async () => {
  product = await api('POST', '/products', { name: 'Canvas bag', brand: 'Example', tags: ['bags', 'summer'], customFields: { permittedCountries: ['CH'] }, identifiers: { 'gs1:01': '09506000134352' } })
  for (const name of ['Leather wallet', 'Wool scarf']) await api('POST', '/products', { name })
  item = await api('POST', '/thngs', { name: 'Canvas bag 0001', product: product.id, identifiers: { 'gs1:21': 'A1B2' } })
  for (let at = 2; at < 8; at++) await api('POST', '/thngs', { name: `Canvas bag 000${at}`, product: product.id })
  const make = (platformId, url) => api('POST', '/redirections?wait=edges', { platformId, defaultRedirectUrl: url })
  code = await make(product.id, 'https://example.com/bags')
  itemCode = await make(item.id, 'https://example.com/bags/{shortId}')
  // deploy/tour --database puts these networks into eight cities.
  const from = ['203.0.113.8', '203.0.113.8', '203.0.113.20', '198.51.100.4', '198.51.100.70', '192.0.2.9', '203.0.113.140']
  for (let turn = 0; turn < 3; turn++) for (const address of from) await scan(code.shortUrl, address)
  for (const model of ['A', 'B']) {
    await scan(itemCode.shortUrl, '203.0.113.8', `Mozilla/5.0 (Linux; Android 14; Model${model}) AppleWebKit/537.36 Chrome/126.0.0.0 Mobile Safari/537.36`)
    // The second is later by the clock of the edge, too: a verdict looks at what was before.
    await new Promise((done) => setTimeout(done, 50))
  }
  await eventually(async () => {
    const { totals } = await api('GET', '/scans/stats')
    assert.equal(totals.scans, 23)
  }, 20_000)
  const scans = await eventually(async () => {
    const found = await api('GET', `/thngs/${item.id}/actions/implicitScans`)
    assert.equal(found.length, 2)
    return found.toSorted((a, b) => b.timestamp - a.timestamp)
  }, 20_000)
  await api('POST', '/authentication', { id: scans[0].id })
  // Nobody loaded the empty overview again.
  await eventually(async () => assert.match(await page.locator('[data-test=scans]').textContent(), /^[1-9]/), 10_000)
})

await step('the overview shows what the statistics say', async () => {
  await open(page, './?range=24h')
  const { totals } = await api('GET', '/scans/stats')
  await eventually(async () => assert.equal(await page.locator('[data-test=scans]').textContent(), String(totals.scans)))
  // The page loads these once a minute: what it shows is compared with what was counted when it was opened.
  await eventually(async () => {
    await open(page, './?range=24h')
    for (const [group, dimension] of [['countries', 'country'], ['products', 'product'], ['links', 'link'], ['devices', 'device'], ['verdicts', 'verdict']]) {
      const { rows } = await api('GET', `/scans/stats?groupBy=${dimension}&top=8`)
      const shown = await page.locator(`[data-test=${group}] tbody tr`).evaluateAll((rows) => rows.map((row) => row.cells[1].textContent.trim()))
      assert.deepEqual(shown, rows.map((row) => String(row.scans)), group)
    }
  })
  assert.match(await page.locator('[data-test=products]').textContent(), /Canvas bag/)
  assert.match(await page.locator('[data-test=countries]').textContent(), /Germany|Switzerland/)
})

await step('a time range is in the address and survives a reload', async () => {
  await page.getByRole('button', { name: '30 days' }).click()
  await settled(page)
  assert.match(page.url(), /range=30d/)
  await page.reload()
  await settled(page)
  assert.equal(await page.getByRole('button', { name: '30 days' }).getAttribute('aria-pressed'), 'true')
  await page.getByRole('button', { name: 'Table' }).click()
  const counts = await page.locator('figure tbody td:nth-child(2)').allTextContents()
  assert.equal(counts.length, 30)
  assert.equal(counts.reduce((sum, count) => sum + Number(count), 0), 23)
})

await step('a chart that cannot be loaded says so, shows its table and can be tried again', async () => {
  const drawing = /uplot[^/]*\.js$/i
  await page.route(drawing, (route) => route.abort())
  await allowing((status) => status === 0, async () => {
    await page.goto(new URL('./?range=30d', root).href)
    await page.getByText('The chart could not be loaded').waitFor()
    assert.equal(await page.locator('figure tbody tr').count(), 30)
    assert.equal(await page.locator('.plot').count(), 0)
    await shot(page, 'chart-missing')
    await accessible(page, 'chart-missing')
    await page.unroute(drawing)
    await page.getByRole('button', { name: 'Try again' }).click()
    await page.locator('.plot canvas').waitFor()
  })
  assert.equal(await page.getByText('The chart could not be loaded').count(), 0)
})

await step('the map shows the scans of each country, and a country narrows what is counted by country', async () => {
  await open(page, './?range=24h')
  const { rows, totals } = await api('GET', '/scans/stats?groupBy=country&top=300')
  const marks = page.locator('[data-test=map] [data-country]')
  const known = rows.filter((row) => row.country && row.scans > 0)
  assert.ok(known.length >= 4, JSON.stringify(rows))
  await eventually(async () => assert.deepEqual((await marks.evaluateAll((all) => all.map((one) => one.dataset.country))).sort(), known.map((row) => row.country).sort()))
  const english = new Intl.DisplayNames(['en'], { type: 'region' })
  for (const { country, scans } of known) {
    const says = await page.locator(`[data-country=${country}]`).getAttribute('aria-label')
    assert.ok(says.startsWith(`${english.of(country)}, scans: ${scans} (`), `${country} ${scans}: ${says}`)
  }
  // The more scans, the darker; what has as many has the same shade.
  const shades = new Map(await marks.evaluateAll((all) => all.map((one) => [one.dataset.country, Number(one.dataset.shade)])))
  for (const [at, row] of known.entries()) for (const other of known.slice(at + 1)) assert.ok(shades.get(row.country) >= shades.get(other.country), `${row.country} ${other.country}`)
  assert.equal(shades.get(known[0].country), 4)
  await shot(page, 'map')

  await page.locator('[data-country=DE]').click()
  await settled(page)
  assert.match(page.url(), /country=DE/)
  assert.match(page.url(), /range=24h/)
  const german = await api('GET', '/scans/stats?filter=country%3DDE')
  await eventually(async () => assert.equal(await page.locator('[data-test=scans]').textContent(), String(german.totals.scans)))
  assert.ok(german.totals.scans > 0 && german.totals.scans < totals.scans)
  const { rows: products } = await api('GET', '/scans/stats?groupBy=product&filter=country%3DDE')
  const shown = (group) => page.locator(`[data-test=${group}] tbody tr`).evaluateAll((rows) => rows.map((row) => row.cells[1].textContent.trim()))
  await eventually(async () => assert.deepEqual(await shown('products'), products.map((row) => String(row.scans))))
  assert.match(await page.locator('[data-test=regions]').textContent(), /Berlin/)
  assert.equal(await page.locator('[data-test=devices]').count(), 0, 'devices are not counted by country')
  assert.equal(await page.locator('[data-country=DE]').getAttribute('aria-pressed'), 'true')
  assert.equal(await page.locator('[data-test=countries] a[aria-current]').textContent(), 'Germany')
  const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'CSV' }).click()])
  const [head, ...lines] = readFileSync(await download.path(), 'utf8').trim().split(/\r?\n/)
  assert.equal(lines.reduce((sum, line) => sum + Number(line.split(',')[head.split(',').indexOf('scans')]), 0), german.totals.scans)
  await page.reload()
  await settled(page)
  await page.locator('[data-test=only]').getByText('Only Germany').waitFor()
  await page.getByRole('button', { name: 'All countries' }).click()
  await eventually(async () => assert.equal(await page.locator('[data-test=scans]').textContent(), String(totals.scans)))
  assert.doesNotMatch(page.url(), /country/)
  // The countries are loaded apart from the total.
  await settled(page)

  // By keyboard: one stop of Tab, arrows by rank, Enter chooses.
  assert.equal(await page.locator('[data-country][tabindex="0"]').count(), 1)
  await page.locator('[data-country][tabindex="0"]').focus()
  await page.keyboard.press('Home')
  await page.keyboard.press('ArrowRight')
  const second = await page.evaluate(() => document.activeElement.dataset.country)
  assert.equal(second, await page.locator('[data-test=countries] tbody tr').nth(1).locator('a').evaluate((link) => new URL(link.href).searchParams.get('country')))
  await page.keyboard.press('Enter')
  await page.waitForURL(new RegExp(`country=${second}`))
  await open(page, './?country=LI')
  await page.getByText('No scans from here: Liechtenstein').waitFor()
  // Whose outlines these are is said.
  assert.match(await (await page.request.get(new URL('licences.txt', root).href)).text(), /^world-atlas 2.*\(ISC\)/m)
})

await step('every time range has its links, by days of UTC', async () => {
  for (const range of ['7d', '30d', '90d', '365d']) {
    await open(page, `./?range=${range}`)
    await settled(page)
    assert.equal(await page.locator('[data-test=links] tbody tr').count(), 2, range)
    assert.match(await page.locator('#g-links + span').textContent(), /^\d+ days \(UTC\)$/)
  }
  await open(page, './?range=30d')
  await settled(page)
})

await step('the CSV of a chart is that of the API', async () => {
  const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'CSV' }).click()])
  const text = readFileSync(await download.path(), 'utf8')
  const [head, ...lines] = text.trim().split(/\r?\n/)
  const at = head.split(',').indexOf('scans')
  assert.match(head, /^from,to,scans,newDevices,robots/)
  assert.equal(lines.reduce((sum, line) => sum + Number(line.split(',')[at]), 0), 23)
})

await step('a scan appears while one looks, without a reload', async () => {
  await open(page, './?range=24h')
  await page.getByText('live', { exact: true }).waitFor()
  await eventually(async () => {
    await scan(code.shortUrl, '203.0.113.8')
    assert.match(await page.locator('[data-test=live] li').first().textContent({ timeout: 2_000 }), /Canvas bag/)
  }, 15_000)
})

await step('the live view begins again after the server refused it', async () => {
  // It waits 5 s before it asks again: on this page half a second.
  const page = await owner.context.newPage()
  await page.addInitScript(() => {
    const real = globalThis.setTimeout
    globalThis.setTimeout = (run, ms, ...more) => real(run, ms / 10, ...more)
  })
  let asked = 0
  const seen = later()
  await page.route(/scans\/live/, async (route) => {
    asked += 1
    if (asked === 1) return await route.fulfill({ status: 503 })
    await seen.promise
    await route.continue()
  }, { times: 2 })
  await load(page, './?range=24h')
  await page.getByText('connecting', { exact: true }).waitFor()
  await eventually(() => assert.ok(asked > 0))
  seen.resolve()
  await page.getByText('live', { exact: true }).waitFor()
  assert.equal(asked, 2)
  await page.close()
})

await step('links, products and items are the lists of the API', async () => {
  const rows = (name) => page.locator(`[data-test=${name}] tbody tr td:first-child a`).allTextContents()
  await open(page, 'links')
  const links = await api('GET', '/redirections')
  assert.deepEqual(await rows('links'), links.map((one) => `${one.shortDomain}/${one.shortId}`))
  await open(page, 'products')
  assert.deepEqual(await rows('products'), (await api('GET', '/products')).map((one) => one.name))
  // The scans of the live view are counted a moment after they came, and the page asks for the counts once.
  await eventually(async () => {
    await open(page, 'products')
    const counts = new Map((await api('GET', '/scans/stats?groupBy=product')).rows.map((row) => [row.product, row.scans]))
    const expectedCounts = (await api('GET', '/products')).map((one) => String(counts.get(one.id) ?? 0))
    await eventually(async () => assert.deepEqual(await page.locator('[data-test=products] td.number').allTextContents(), expectedCounts), 2_000)
  })
  await open(page, `items?product=${product.id}`)
  assert.match(await page.locator('[data-test=of-product]').textContent(), /Canvas bag/)
  await page.getByRole('button', { name: 'Show all' }).click()
  await page.locator('[data-test=of-product]').waitFor({ state: 'detached' })
  await open(page, 'items')
  assert.deepEqual(await rows('items'), (await api('GET', '/thngs')).map((one) => one.name))
  await page.getByLabel('Name begins with').fill('Canvas bag 0001')
  await page.getByLabel('Name begins with').press('Enter')
  await eventually(async () => assert.deepEqual(await rows('items'), ['Canvas bag 0001']))
  assert.match(page.url(), /name=Canvas/)
  // Where the Digital Links of a product lead.
  const domain = `/accounts/${(await api('GET', '/access')).account}/domains/${encodeURIComponent(code.shortDomain)}`
  await api('PUT', domain, { digitalLinks: true })
  const leads = (name, href, more) => ({ linkType: 'gs1:pip', href: `https://shop.invalid/${href}`, title: name, ...more })
  const linked = await api('POST', '/products', { name: 'Red shoe', identifiers: { 'gs1:01': '09506000134369' }, serialMode: 'template',
    links: [leads('Shoe', 'shoe/{21}', { default: true }), leads('Schuh', 'de/shoe', { hreflang: ['de'] })] })
  const swiss = leads('Swiss', 'ch/shoe', { hreflang: ['de'], context: ['CH'] })
  await api('PUT', `/products/${linked.id}?wait=edges`, { links: [...linked.links, swiss] })
  await open(page, `products/${linked.id}`)
  const preview = page.locator('[data-test=digital-preview]')
  const shows = async (href, why) => {
    await preview.locator('[data-test=preview-links]').click()
    await eventually(async () => assert.equal(await page.locator('[data-test=leads]').textContent(), `https://shop.invalid/${href}`))
    await page.locator('[data-test=previewed]').getByText(why).waitFor()
  }
  await page.locator('[data-test=digital-links]').getByLabel('Serial', { exact: true }).fill('A/1')
  await shows('shoe/A%2F1', 'This is the default link.')
  await preview.getByLabel('Context').selectOption('CH')
  await preview.getByLabel('Language of the phone').selectOption('de')
  await page.locator('[data-test=leads]').waitFor({ state: 'detached' })
  await shows('ch/shoe?context=CH', 'The context decides.')
  await api('PUT', `/products/${linked.id}?wait=edges`, { links: linked.links })
  await open(page, `products/${linked.id}`)
  const record = await api('GET', `/redirections/01%2F09506000134369?domain=${encodeURIComponent(code.shortDomain)}`)
  assert.ok((await page.locator('[data-test=uri]').textContent()).includes(record.shortUrl))
  // Nothing is asked outside of this machine: no page of a name that nobody has is there.
  await page.locator('[data-test=check-links]').click()
  await page.locator('[data-test=page]').first().waitFor()
  assert.equal(await page.locator('[data-test=page] .tag.bad').count(), linked.links.length)
  // A link and a lot are added; what the API refuses stands at its field.
  await page.locator('[data-test=edit-links]').click()
  const form = page.locator('[data-test=digital-form]')
  await form.getByRole('button', { name: 'Add a link' }).click()
  const third = form.getByRole('group', { name: 'Link 3 of Product' })
  await third.getByLabel('Leads to').fill('ftp://example.com/recall')
  await third.getByLabel('Title').fill('Recall')
  await third.getByLabel('Type').fill('gs1:recallStatus')
  await third.getByLabel('A scan leads here').check()
  await form.getByRole('button', { name: 'Remove Schuh' }).click()
  await form.getByRole('button', { name: 'Add a lot or variant' }).click()
  await form.getByLabel('Lot (10)').fill('L1')
  const ofLot = form.getByRole('group', { name: 'Link 1 of Lot L1' })
  await ofLot.getByLabel('Leads to').fill('https://shop.invalid/lot/{10}')
  await ofLot.getByLabel('Title').fill('Lot')
  await allowing((status) => status === 400, async () => {
    await page.locator('[data-test=save-links]').click()
    await page.locator('[data-fault=link-0-1-href]').waitFor()
  })
  await form.getByRole('group', { name: 'Link 2 of Product' }).getByLabel('Leads to').fill('https://shop.invalid/recall')
  await page.locator('[data-test=save-links]').click()
  await page.locator('[data-test=saved-links]').getByText(/live on every edge after \d+ ms/).waitFor()
  const changed = await api('GET', `/products/${linked.id}`)
  assert.deepEqual(changed.links, [leads('Shoe', 'shoe/{21}'), { ...leads('Recall', 'recall', { default: true }), linkType: 'gs1:recallStatus' }])
  assert.deepEqual(changed.levels, [{ lot: 'L1', links: [leads('Lot', 'lot/{10}', { default: true })] }])
  await api('DELETE', `/products/${linked.id}`)
  await api('PUT', domain, { digitalLinks: false })
})

await step('an item shows its scans, its verdict and the reasons', async () => {
  await open(page, `items/${item.id}`)
  const actions = await api('GET', `/thngs/${item.id}/actions/all`)
  assert.equal(await page.locator('[data-test=actions] tbody tr').count(), actions.length)
  const { stored, results } = await api('POST', '/authentication/replay', { thng: item.id })
  const shown = await page.locator('[data-test=verdict]').textContent()
  const reason = results.find((one) => one.reasons.length > 0).reasons[0]
  assert.ok(shown.includes(reason), `${reason} in ${shown}`)
  assert.equal(stored.grayMarketStatus, 'confirmed')
  assert.match(shown, /Diverted/)
  assert.match(await page.locator('[data-test=actions]').textContent(), /Berlin/, 'the owner sees cities')
  await shot(page, 'item')
})

await step('what happened to an item has pages, and a page can be sent', async () => {
  const [{ id }] = await api('GET', `/thngs?filter=${encodeURIComponent('name=Canvas bag 0002')}`)
  for (let turn = 0; turn < 26; turn++) await api('POST', `/thngs/${id}/actions/checkins`, { type: 'checkins' })
  const rows = page.locator('[data-test=actions] tbody tr')
  const has = (count) => eventually(async () => assert.equal(await rows.count(), count))
  const back = page.getByRole('button', { name: 'Back' })
  await open(page, `items/${id}`)
  await has(25)
  assert.equal(await back.count(), 0)
  await page.getByRole('button', { name: 'Next page' }).click()
  await has(1)
  const second = page.url()
  assert.match(second, /after=/)
  await back.click()
  await has(25)
  await open(page, second)
  await has(1)
  await page.getByRole('button', { name: 'Newest' }).click()
  await has(25)
  const sent = await owner.context.newPage()
  await sent.goto(second)
  await settled(sent)
  assert.equal(await sent.getByRole('button', { name: 'Newest' }).count(), 1)
  assert.equal(await sent.getByRole('button', { name: 'Back' }).count(), 0, 'before it is nothing of ours')
  await sent.close()
})

await step('a product opens by an identifier, with all its panels', async () => {
  await open(page, 'products/gs1:01:09506000134352')
  assert.match(await page.locator('h1').textContent(), /Canvas bag/)
  assert.equal(await page.locator('[data-test=items] tbody tr').count(), 7)
})

await step('a target is changed, edges have it, and the change is undone', async () => {
  await open(page, `links/${code.shortDomain}/${code.shortId}`)
  const field = page.locator('[data-test=target]')
  assert.equal(await field.inputValue(), code.defaultRedirectUrl)
  await field.fill('https://example.com/recall')
  await page.locator('[data-test=save]').click()
  await page.getByText(/live on every edge after \d+ ms/).waitFor()
  assert.equal((await scan(code.shortUrl, '203.0.113.8')).headers.location, 'https://example.com/recall')
  await page.locator('[data-test=history]').getByText('https://example.com/recall').first().waitFor()
  await shot(page, 'link')
  await page.locator('[data-test=undo]').click()
  await targetIs(code.defaultRedirectUrl)
  // The API has it before the page has the answer, and what the page saves next is saved over what it has.
  await page.getByText(/live on every edge after \d+ ms/).waitFor()
})

await step('an earlier state of a link is restored, and taken back', async () => {
  const history = page.locator('[data-test=history]')
  /** Waits until the history begins with a change, without a reload. */
  const begins = (said) => eventually(async () => assert.match(await history.locator('ol > li').first().textContent(), said))
  // The newest change is the way back to the first target; the one before led to the other.
  await begins(/PUT .*\/recall.*\/bags/s)
  await history.locator('[data-test=restore]').first().click()
  await history.getByText(/live on every edge after \d+ ms/).waitFor()
  await targetIs('https://example.com/recall')
  assert.equal((await scan(code.shortUrl, '203.0.113.8')).headers.location, 'https://example.com/recall')
  await begins(/\/restore.*\/bags.*\/recall/s)
  await history.locator('[data-test=restore]').first().click()
  await history.getByText(/live on every edge after \d+ ms/).waitFor()
  await targetIs(code.defaultRedirectUrl)
  await open(page, `links/${code.shortDomain}/${code.shortId}`)
})

await step('a link is paused, ends by its time with a page of its own, and is open again', async () => {
  const times = async (expected) => {
    await page.locator('[data-test=save-times]').click()
    await page.locator('[data-test=saved-times]').getByText('Saved').waitFor()
    assert.equal(await page.locator('[data-test=state]').textContent(), expected)
  }
  await page.locator('[data-test=paused]').check()
  await times('Paused')
  assert.equal((await scan(code.shortUrl, '203.0.113.8')).statusCode, 404)
  await page.locator('[data-test=paused]').uncheck()
  await page.locator('[data-test=valid-until]').fill('2020-01-01T00:00:00')
  await page.locator('[data-test=ended-url]').fill('https://example.com/over')
  await times('Ended')
  await shot(page, 'link-ended')
  assert.equal((await scan(code.shortUrl, '203.0.113.8')).headers.location, 'https://example.com/over')
  // An end before the start is refused in words, and what was typed stays.
  await page.locator('[data-test=valid-from]').fill('2021-01-01T00:00:00')
  await allowing((status) => status === 400, async () => {
    await page.locator('[data-test=save-times]').click()
    await page.getByText('validUntil must be after validFrom').waitFor()
  })
  await open(page, 'links')
  await page.locator('[data-test=closed]').getByText('Ended').first().waitFor()
  await open(page, `links/${code.shortDomain}/${code.shortId}`)
  await page.locator('[data-test=valid-until]').fill('')
  await page.locator('[data-test=ended-url]').fill('')
  await times('Active')
  assert.equal((await scan(code.shortUrl, '203.0.113.8')).headers.location, code.defaultRedirectUrl)
  // After one more scan it has ended, too.
  await page.locator('[data-test=max-scans]').fill('1')
  await times('Active')
  assert.equal((await scan(code.shortUrl, '203.0.113.8')).headers.location, code.defaultRedirectUrl)
  assert.equal((await scan(code.shortUrl, '203.0.113.8')).statusCode, 410)
  await page.locator('[data-test=max-scans]').fill('')
  await times('Active')
})

await step('where a link leads is tried without a scan, and the page says why', async () => {
  const rule = { name: 'German', match: 'language=de&operatingSystemName=iPhone', redirectUrl: 'https://example.com/de/{shortId}' }
  await api('PUT', '/redirector?wait=edges', { rules: [rule] })
  const tried = page.locator('[data-test=tried]')
  await page.locator('[data-test=try-language]').fill('de-AT')
  await page.locator('[data-test=try-device]').selectOption('iphone')
  await page.locator('[data-test=try]').click()
  await tried.getByText(`https://example.com/de/${code.shortId}`).waitFor()
  await tried.getByText('The rule “German” decides, because of language=de, operatingSystemName=iPhone.').waitFor()
  await page.locator('[data-test=try-device]').selectOption('windows')
  await page.locator('[data-test=try]').click()
  await tried.getByText('not met: operatingSystemName=iPhone').waitFor()
  await tried.getByText(code.defaultRedirectUrl).waitFor()
  await shot(page, 'link-tried')
  const poster = { name: 'Poster', match: 'query.ref=poster&device=tablet', redirectUrl: 'https://example.com/poster' }
  await api('PUT', '/redirector?wait=edges', { rules: [poster] })
  await page.locator('[data-test=try-more]').click()
  await page.locator('[data-test=try-query]').fill('?ref=poster')
  await page.locator('[data-test=try-device]').selectOption('ipad')
  await page.locator('[data-test=try]').click()
  await tried.getByText('The rule “Poster” decides, because of query.ref=poster, device=tablet.').waitFor()
  await api('PUT', '/redirector?wait=edges', { rules: [] })
})

/** Waits until the link leads somewhere. */
function targetIs (url) {
  return eventually(async () => assert.equal((await api('GET', `/redirections/${code.shortId}`)).defaultRedirectUrl, url))
}
const saved = page.locator('[data-test=saved]')

await step('an edge that does not answer is named, and nobody is told that all have it', async () => {
  await page.route(/wait=edges/, async (route) => {
    const response = await route.fetch()
    const edges = `${response.headers()['x-waymark-edges']}; unreachable=edge-3`
    await route.fulfill({ response, headers: { ...response.headers(), 'x-waymark-edges': edges } })
  }, { times: 1 })
  await page.locator('[data-test=target]').fill('https://example.com/partly')
  await page.locator('[data-test=save]').click()
  await page.getByText('Saved; not confirmed by edge-3').waitFor()
  assert.doesNotMatch(await saved.textContent(), /every edge/)
})

await step('a change whose answer is lost is not called undone, and no conflict with oneself', async () => {
  await allowing((status) => status === 0, async () => {
    await page.route(/wait=edges/, async (route) => { await route.fetch(); await route.abort() }, { times: 1 })
    await page.locator('[data-test=target]').fill('https://example.com/lost')
    await page.locator('[data-test=save]').click()
    await page.getByText('Whether it was changed is not known').waitFor()
    await page.getByText('What you typed stays here').waitFor({ state: 'detached' })
  })
  await page.locator('[data-test=save]').click()
  await page.getByText('Saved; not every edge has confirmed it').waitFor()
  assert.equal(await page.locator('[data-test=conflict]').count(), 0)
  await targetIs('https://example.com/lost')
})

await step('an undo that meets the change of somebody else saves what was undone', async () => {
  const field = page.locator('[data-test=target]')
  await field.fill('https://example.com/second')
  await page.locator('[data-test=save]').click()
  await saved.getByText(/live on every edge/).waitFor()
  await api('PUT', `/redirections/${code.shortId}?wait=edges`, { defaultRedirectUrl: 'https://example.com/theirs' })
  await page.locator('[data-test=undo]').click()
  const told = page.locator('[data-test=conflict]')
  await told.waitFor()
  assert.equal(await field.inputValue(), 'https://example.com/lost')
  await told.getByRole('button', { name: 'Save mine' }).click()
  await targetIs('https://example.com/lost')
  await saved.getByText(/live on every edge/).waitFor()
})

await step('what is typed outlasts another screen', async () => {
  await page.locator('[data-test=target]').fill('https://example.com/draft')
  await page.getByRole('link', { name: 'Products' }).first().click()
  await page.locator('[data-test=products]').waitFor()
  await page.goBack()
  await settled(page)
  assert.equal(await page.locator('[data-test=target]').inputValue(), 'https://example.com/draft')
  await page.getByRole('button', { name: 'Discard' }).click()
  assert.equal(await page.locator('[data-test=target]').inputValue(), 'https://example.com/lost')
})

await step('what is refused is said, and nothing that was typed is lost', async () => {
  await allowing((status) => status === 400, async () => {
    await page.locator('[data-test=target]').fill('https://user:secret@example.com/')
    await page.locator('[data-test=save]').click()
    const alert = page.getByRole('alert')
    await alert.waitFor()
    assert.match(await alert.textContent(), /This was refused.*Id of the request/s)
    assert.equal(await page.locator('[data-test=target]').inputValue(), 'https://user:secret@example.com/')
    await page.getByRole('button', { name: 'Discard' }).click()
  })
})

await step('of two who edit one link the second is told', async () => {
  const field = page.locator('[data-test=target]')
  await field.fill('https://example.com/mine')
  await api('PUT', `/redirections/${code.shortId}?wait=edges`, { defaultRedirectUrl: 'https://example.com/theirs' })
  await page.locator('[data-test=save]').click()
  const told = page.locator('[data-test=conflict]')
  await told.waitFor()
  assert.match(await told.textContent(), /https:\/\/example.com\/theirs/)
  assert.equal((await api('GET', `/redirections/${code.shortId}`)).defaultRedirectUrl, 'https://example.com/theirs')
  await told.getByRole('button', { name: 'Save mine' }).click()
  await saved.getByText(/live on every edge/).waitFor()
  assert.equal((await api('GET', `/redirections/${code.shortId}`)).defaultRedirectUrl, 'https://example.com/mine')
})

await step('of two who save in the same moment the second is told', async () => {
  await allowing((status) => status === 412, async () => {
    await page.route(/wait=edges/, async (route) => {
      await api('PUT', `/redirections/${code.shortId}?wait=edges`, { defaultRedirectUrl: 'https://example.com/faster' })
      await route.continue()
    }, { times: 1 })
    await page.locator('[data-test=target]').fill('https://example.com/slower')
    await page.locator('[data-test=save]').click()
    const told = page.locator('[data-test=conflict]')
    await told.waitFor()
    assert.match(await told.textContent(), /https:\/\/example.com\/faster/)
    await targetIs('https://example.com/faster')
    await told.getByRole('button', { name: 'Save mine' }).click()
    await saved.getByText(/live on every edge/).waitFor()
  })
})

await step('times that are saved hide nothing that somebody else changed, and name an edge that has not confirmed them', async () => {
  const path = `/redirections/${code.shortId}`
  const times = page.locator('[data-test=saved-times]')
  const [paused, endedUrl, saveTimes] = ['paused', 'ended-url', 'save-times'].map((name) => page.locator(`[data-test=${name}]`))
  await page.locator('[data-test=target]').fill('https://example.com/typed')
  await api('PUT', `${path}?wait=edges`, { defaultRedirectUrl: 'https://example.com/between', endedUrl: 'https://example.com/theirs' })
  await paused.check()
  await saveTimes.click()
  await page.getByRole('alert').getByText('Somebody else changed this link meanwhile').waitFor()
  // The field that nobody touched has what is new; the other one what was typed.
  assert.equal(await endedUrl.inputValue(), 'https://example.com/theirs')
  assert.equal(await paused.isChecked(), true)
  await page.route(/wait=edges/, async (route) => {
    const response = await route.fetch()
    const edges = `${response.headers()['x-waymark-edges']}; unreachable=edge-3`
    await route.fulfill({ response, headers: { ...response.headers(), 'x-waymark-edges': edges } })
  }, { times: 1 })
  await saveTimes.click()
  await times.getByText('Saved; not confirmed by edge-3').waitFor()
  const { status, endedUrl: ended } = await api('GET', path)
  assert.deepEqual([status, ended], ['paused', 'https://example.com/theirs'])
  // The target was typed over an older one: that is a conflict still.
  assert.equal(await page.locator('[data-test=target]').inputValue(), 'https://example.com/typed')
  await page.locator('[data-test=save]').click()
  const told = page.locator('[data-test=conflict]')
  await told.waitFor()
  assert.match(await told.textContent(), /https:\/\/example.com\/between/)
  await targetIs('https://example.com/between')
  await told.getByRole('button', { name: 'Take theirs' }).click()
  // A target that is typed over the shown one is saved over the times that this page saved since.
  await page.locator('[data-test=target]').fill('https://example.com/mine')
  await paused.uncheck()
  await endedUrl.fill('')
  await saveTimes.click()
  await times.getByText(/live on every edge/).waitFor()
  await page.locator('[data-test=save]').click()
  await saved.getByText(/live on every edge/).waitFor()
  await targetIs('https://example.com/mine')
})

await step('the status code of a link is chosen beside what it means', async () => {
  const path = `/redirections/${code.shortId}`
  const [status, saveTimes, told] = ['status-code', 'save-times', 'saved-times'].map((name) => page.locator(`[data-test=${name}]`))
  assert.equal(await status.inputValue(), '307')
  await page.locator('#status-code-hint').getByText(/may remember the target/).waitFor()
  for (const chosen of [301, 307]) {
    await status.selectOption(String(chosen))
    await saveTimes.click()
    await told.getByText(/live on every edge/).waitFor()
    const { statusCode, status: state, defaultRedirectUrl } = await api('GET', path)
    assert.deepEqual([statusCode, state, defaultRedirectUrl], [chosen, 'active', 'https://example.com/mine'])
  }
})

await step('the code is shown, and comes in every format', async () => {
  const width = await page.locator('.code img').evaluate(async (image) => { await image.decode(); return image.naturalWidth })
  assert.equal(width, 320)
  for (const [format, begin] of [['png', '\x89PNG'], ['svg', '<svg'], ['pdf', '%PDF'], ['eps', '%!PS']]) {
    const [download] = await Promise.all([page.waitForEvent('download'), page.locator(`[data-test=${format}]`).click()])
    const text = readFileSync(await download.path(), 'latin1')
    assert.ok(text.startsWith(begin) || text.includes(begin), `${format}: ${text.slice(0, 20)}`)
  }
})

await step('while the server is away the page says so, keeps what was typed, and goes on by itself', async () => {
  await load(page, `links/${code.shortDomain}/${code.shortId}`)
  // The other screens are loaded ahead, 3 s after the first: each with all that it is made of, before nothing answers.
  await page.waitForFunction(() => {
    const loaded = new Set(performance.getEntriesByType('resource').map((entry) => entry.name))
    const parts = [...document.querySelectorAll('link[rel=modulepreload], link[rel=stylesheet]')].map((part) => part.href)
    return [/\/Items-/, /\/Settings-/, /\/Palette-/].every((name) => parts.some((part) => name.test(part))) && parts.every((part) => loaded.has(part))
  })
  await allowing((status) => status === 0, async () => {
    await page.locator('[data-test=target]').fill('https://example.com/kept')
    await owner.context.setOffline(true)
    await page.locator('[data-test=save]').click()
    await page.getByText('Waymark does not answer. What you typed').waitFor()
    await owner.context.setOffline(false)
    await page.getByText('Waymark does not answer. What you typed').waitFor({ state: 'detached' })
    await settled(page)
  })
  assert.equal(await page.locator('[data-test=target]').inputValue(), 'https://example.com/kept')
  await page.locator('[data-test=save]').click()
  await page.getByText(/live on every edge/).waitFor()
  await allowing((status) => status === 0, async () => {
    await owner.context.setOffline(true)
    await page.getByRole('link', { name: 'Items' }).first().click()
    await page.getByRole('heading', { name: 'Items', level: 1 }).waitFor()
    await page.getByText('Waymark does not answer. What you typed').waitFor()
    await owner.context.setOffline(false)
    await page.locator('[data-test=items]').waitFor()
  })
})

await step('a key is shown once and is revoked by two clicks', async () => {
  await open(page, 'settings')
  await page.getByPlaceholder('What the key is for').fill('from the console')
  await page.getByRole('button', { name: 'Make a key' }).click()
  const key = await page.locator('[data-test=made] .mono').textContent()
  assert.equal(key.length, 80)
  const works = async () => (await fetch(`${apiUrl}/access`, { headers: { authorization: key } })).status
  assert.equal(await works(), 200)
  await shot(page, 'access')
  await page.getByRole('button', { name: 'I have kept it' }).click()
  const row = page.locator('[data-test=keys] tbody tr').filter({ hasText: 'from the console' })
  await row.getByRole('button', { name: 'Revoke' }).click()
  assert.equal(await works(), 200, 'one click revokes nothing')
  await row.getByRole('button', { name: /Revoke “from the console” now/ }).click()
  await row.getByText('Revoked').waitFor()
  await eventually(async () => assert.equal(await works(), 401))
  await open(page, 'team')
  assert.match(await page.locator('[data-test=sessions]').textContent(), /Chrom.*this one/)
})

const ofStatus = /console\/api\/status$/
await step('the fleet shows each edge as the state of the service has it, and is loaded again by itself', async () => {
  await open(page, 'fleet')
  const rows = page.locator('[data-test=edges] tbody tr')
  const cells = () => rows.evaluateAll((all) => all.map((row) => [...row.cells].map((cell) => cell.textContent.trim())))
  const counts = () => page.locator('[data-test=intake] dd').allTextContents()
  // An edge that has just applied a change says so with its next report, and the page asks every 3 s.
  const status = await eventually(async () => {
    const status = await api('GET', '/status')
    assert.equal(status.edges.length, 1)
    const [edge] = status.edges
    const [[id, state, lag, region, build, heard]] = await cells()
    assert.deepEqual([id, state, lag, region, build, heard], [edge.edgeId, 'Up to date', '0', edge.region, edge.build, 'just now'])
    const { scans } = status
    assert.deepEqual(await counts(), [scans.recorded, scans.repeated, scans.unknown, scans.overQuota, scans.missing].map((count) => count.toLocaleString('en-GB')))
    return status
  })
  const { edges: [edge], scans } = status
  assert.match(await page.locator('[data-test=summary]').textContent(), /Edges that answer: 1 of 1/)
  await shot(page, 'fleet')

  // Another edge falls behind while one looks.
  const others = [
    { ...edge, edgeId: 'edge-far', region: 'us', build: '0.0.9', lag: 5_000, applied: 1, rejected: [7, 9], replica: 'control-2' },
    { ...edge, edgeId: 'edge-away', region: 'us', reachable: false, silentMs: 125_000 }
  ]
  await page.route(ofStatus, (route) => route.fulfill({ json: { ...status, edges: [edge, ...others], scans: { ...scans, missing: 3 } } }))
  await eventually(async () => assert.equal(await rows.count(), 3), 10_000)
  const shown = new Map((await cells()).map((row) => [row[0], row]))
  assert.deepEqual(shown.get('edge-far').slice(1, 5), ['Far behindrefused 2', '5,000', 'us', '0.0.9'])
  assert.deepEqual([shown.get('edge-away')[1], shown.get('edge-away')[5]], ['Away', '2 minutes ago'])
  assert.match(await page.locator('[data-test=summary]').textContent(), /2 of 3.*2 versions/s)
  assert.equal((await counts()).at(-1), '3')
  await page.getByRole('button', { name: 'Only what needs attention' }).click()
  await eventually(async () => assert.equal(await rows.count(), 2))
  await page.getByLabel('Region').selectOption(edge.region)
  await page.getByText('Nothing matches the filter').waitFor()
  assert.match(page.url(), /only=attention/)
  assert.match(page.url(), /region=/)
  await page.reload()
  await page.getByText('Nothing matches the filter').waitFor()
  await page.getByRole('button', { name: 'Clear' }).click()
  await eventually(async () => assert.equal(await rows.count(), 3))
  await shot(page, 'fleet-behind')
  await accessible(page, 'a fleet with faults')
  await page.unrouteAll()
})

await step('the fleet asks for nothing while nobody looks, and says what is empty or failed', async () => {
  const status = await api('GET', '/status')
  // The intervals of this page pass when the test says so.
  const page = await owner.context.newPage()
  await page.addInitScript(() => {
    const due = []
    globalThis.setInterval = (run) => due.push(run)
    globalThis.clearInterval = (id) => { delete due[id - 1] }
    globalThis.pass = () => { for (const run of due) run?.() }
  })
  await load(page, 'fleet')
  const pass = () => page.evaluate(() => globalThis.pass())
  /** Requests are seen in their order: none that was made before is missing after this. */
  const seen = () => page.evaluate((url) => fetch(url).then((answer) => answer.text()), new URL('icon.svg', root).href)
  await page.evaluate(() => { Object.defineProperty(document, 'hidden', { configurable: true, get: () => true }) })
  await seen()
  let asked = 0
  page.on('request', (request) => { if (request.url().endsWith('/console/api/status')) asked += 1 })
  await pass()
  await seen()
  assert.equal(asked, 0)
  await page.evaluate(() => { delete document.hidden; document.dispatchEvent(new Event('visibilitychange')) })
  await pass()
  await eventually(async () => assert.ok(asked > 0), 2_000)

  // An answer that takes longer than the interval is waited for.
  const late = later()
  await page.route(ofStatus, async (route) => {
    await late.promise
    await route.fulfill({ json: { ...status, edges: [] } }).catch(() => {})
  })
  const before = asked
  for (let turn = 0; turn < 3; turn++) {
    await pass()
    await seen()
  }
  assert.ok(asked <= before + 1, `${asked - before} requests at once`)
  late.resolve()
  await eventually(async () => {
    await pass()
    assert.ok(await page.getByText('No edge has connected yet').isVisible())
  })
  await page.unrouteAll()
  await page.route(ofStatus, (route) => route.fulfill({ status: 503, json: { status: 503, code: 50301, errors: ['Try later.'] } }))
  await eventually(async () => {
    await pass()
    assert.ok(await page.getByRole('alert').first().isVisible())
  })
  await page.unrouteAll()
  await eventually(async () => {
    await pass()
    assert.ok(await page.locator('[data-test=edges]').isVisible())
  })
  await page.close()
})

await step('the audit trail shows who changed what, with what was before, and its filters are in the address', async () => {
  const entries = await api('GET', '/audit?perPage=50')
  await open(page, 'audit')
  const rows = page.locator('[data-test=audit] > tbody > tr:first-child')
  const cells = () => rows.evaluateAll((all) => all.map((row) => [...row.cells].slice(1, 4).map((cell) => cell.textContent.trim().replace(/\s+/g, ' '))))
  const expected = (list) => list.map((one) => [one.actor ? 'You' : 'Command line', one.operation, `${one.resource} ${one.resourceId}`])
  const change = await api('PUT', `/products/${product.id}`, { brand: 'Example & Sons' }).then(() => eventually(async () => {
    const [found] = await api('GET', `/audit?filter=${encodeURIComponent(`resource=product&resourceId=${product.id}`)}&perPage=1`)
    assert.equal(found.operation, 'PUT /products/{id}')
    return found
  }))
  await eventually(async () => {
    await page.reload()
    await settled(page)
    const now = await api('GET', '/audit?perPage=50')
    assert.deepEqual(await cells(), expected(now))
    assert.equal(now.length, Math.min(50, entries.length + 1))
  })

  await page.getByLabel('Kind').fill('product')
  await page.getByLabel('Id', { exact: true }).fill(product.id)
  await page.getByLabel('Operation begins with').fill('PUT /products')
  await page.getByRole('button', { name: 'Filter' }).click()
  await eventually(async () => assert.deepEqual(await cells(), expected([change])))
  assert.match(page.url(), /operation=PUT/)
  // The only entry is open.
  const members = await page.locator('[data-test=differences] tbody tr').evaluateAll((all) => all.map((row) => [...row.cells].map((cell) => cell.textContent.trim())))
  assert.deepEqual(members.find(([name]) => name === 'brand'), ['brand', change.before.brand, change.after.brand])
  assert.deepEqual(members.map(([name]) => name).sort(), [...new Set([...Object.keys(change.before), ...Object.keys(change.after)])].sort())
  await page.getByRole('button', { name: 'All of this request' }).click()
  await settled(page)
  assert.equal(new URL(page.url()).searchParams.get('request'), change.requestId)
  await accessible(page, 'an entry that is open')
  await shot(page, 'audit')
  await page.reload()
  await settled(page)
  await eventually(async () => assert.deepEqual(await cells(), expected([change])))
  await page.getByRole('button', { name: 'Clear' }).click()
  await settled(page)
  await eventually(async () => assert.ok((await rows.count()) > 1))
  await page.getByLabel('From', { exact: true }).fill('2020-01-01')
  await page.getByLabel('Until', { exact: true }).fill('2020-01-31')
  await page.getByRole('button', { name: 'Filter' }).click()
  await page.getByText('Nothing matches the filter').waitFor()
  assert.match(await page.locator('[data-test=export]').getAttribute('href'), /from=1577833200000&to=1580511599999$/, 'days of Berlin')
})

await step('the audit trail has pages, and its export is that of the API', async () => {
  const { length } = await api('GET', '/audit?perPage=100')
  for (let turn = length; turn < 55; turn++) await api('PUT', `/products/${product.id}`, { brand: `Example ${turn}` })
  await open(page, 'audit')
  const rows = page.locator('[data-test=audit] > tbody')
  const all = []
  for (let next = '/audit?perPage=100'; next;) {
    const response = await fetch(`${apiUrl}${next}`, { headers: { authorization: operatorKey } })
    all.push(...await response.json())
    const url = response.headers.get('link')?.match(/<([^>]+)>;\s*rel="?next/)?.[1]
    next = url && `/audit?perPage=100&nextPageToken=${encodeURIComponent(new URL(decodeURIComponent(url), apiUrl).searchParams.get('nextPageToken'))}`
  }
  assert.ok(all.length > 50, `${all.length}`)
  assert.equal(await rows.count(), 50)
  await page.getByRole('button', { name: 'Next page' }).click()
  await settled(page)
  await eventually(async () => assert.equal(await rows.count(), Math.min(50, all.length - 50)))
  assert.match(page.url(), /after=/)
  const [download] = await Promise.all([page.waitForEvent('download'), page.locator('[data-test=export]').click()])
  const lines = readFileSync(await download.path(), 'utf8').trim().split('\n').map((line) => JSON.parse(line))
  assert.deepEqual(lines.map((one) => one.requestId).sort(), all.map((one) => one.requestId).sort())
})

await step('the settings show quotas and the account as the API has them', async () => {
  const { account } = await api('GET', '/access')
  const quotas = await api('GET', `/accounts/${account}/quotas`)
  await open(page, 'settings')
  const cells = (name) => page.locator(`[data-quota=${name}] td`).allTextContents()
  for (const name of ['things', 'links', 'users']) {
    assert.equal((await cells(name))[1], `${quotas[name].more ? 'more than ' : ''}${quotas[name].used.toLocaleString('en-GB')}`, name)
    assert.equal((await cells(name))[2], 'none', name)
  }
  assert.equal(await page.locator('[data-test=quotas] tbody tr').count(), Object.keys(quotas).length)
  assert.equal(await page.getByRole('meter').count(), 0, 'without a limit there is no share')
  const { name } = await api('GET', `/accounts/${account}`)
  assert.match(await page.locator('[data-test=account]').textContent(), new RegExp(`${name}.*${account}`, 's'))
  await shot(page, 'settings')
  // Limits as a platform operator sets them.
  const day = Date.now() + 3_600_000
  await page.route(/\/quotas$/, (route) => route.fulfill({ json: {
    ...quotas, things: { own: true, used: 95, limit: 100 }, links: { own: false, used: 10, limit: 1000 }, storageBytes: { own: false, used: 2_500_000, limit: 5_000_000_000 },
    scansPerDay: { own: false, used: 20, limit: 20, notStored: 7, resetsAt: day }, uploads: { own: false, used: 0, limit: 0 }
  } }))
  await page.reload()
  await settled(page)
  const meter = (name) => page.locator(`[data-quota=${name}] [role=meter]`).getAttribute('aria-valuenow')
  assert.deepEqual(await Promise.all(['things', 'links', 'scansPerDay', 'uploads'].map(meter)), ['95', '1', '100', '100'])
  assert.match((await cells('things')).join(), /95.*100 · set for this account.*nearly used up/)
  assert.match((await cells('scansPerDay')).join(), /begins again at.*not stored today: 7.*used up/s)
  assert.match((await cells('storageBytes')).join(), /2\.5 MB.*5 GB/)
  await accessible(page, 'quotas with limits')
  await shot(page, 'settings-limits')
  await page.unrouteAll()
})

await step('how long redirects are kept is set for a domain, and not over what somebody else set', async () => {
  const { account } = await api('GET', '/access')
  const domain = code.shortDomain
  const path = `/accounts/${account}/domains/${encodeURIComponent(domain)}`
  const age = async () => (await api('GET', `/accounts/${account}/domains`)).find((one) => one.domain === domain).redirectMaxAge
  await open(page, 'domains')
  const row = page.locator(`[data-domain="${domain}"]`)
  const [field, save] = ['redirect-age', 'save-age'].map((name) => row.locator(`[data-test=${name}]`))
  const said = row.getByRole('status').getByText('Saved')
  assert.deepEqual([await field.inputValue(), await save.count(), await age()], ['', 0, undefined])
  await page.locator('#age-hint').getByText(/scans are not counted/).waitFor()
  await field.fill('60')
  await save.click()
  await said.waitFor()
  assert.equal(await age(), 60)
  await allowing((status) => status === 400, async () => {
    await field.fill('86401')
    await save.click()
    await row.getByRole('alert').getByText('redirectMaxAge must be a whole number of seconds from 0 to 86400, or null.').waitFor()
    assert.deepEqual([await field.inputValue(), await age()], ['86401', 60])
  })
  await row.getByRole('button', { name: 'Discard' }).click()
  assert.equal(await field.inputValue(), '60')
  await field.fill('120')
  await api('PUT', path, { redirectMaxAge: 30 })
  await save.click()
  await row.getByRole('alert').getByText('Somebody else changed this meanwhile; it is now: 30 s.').waitFor()
  assert.deepEqual([await field.inputValue(), await age()], ['120', 30])
  await accessible(page, 'an age of redirects that somebody else changed')
  await save.click()
  await said.waitFor()
  assert.equal(await age(), 120)
  await page.reload()
  await settled(page)
  assert.equal(await field.inputValue(), '120')
  await field.fill('')
  await save.click()
  await said.waitFor()
  assert.equal(await age(), undefined)
})

await step('a key is made with bounds, and a wrong network is said', async () => {
  const project = await api('POST', '/projects', { name: 'Shop' })
  await open(page, 'settings')
  await page.getByPlaceholder('What the key is for').fill('of the shop')
  await page.getByLabel('Only from networks').fill('no network')
  await allowing((status) => status === 400, async () => {
    await page.getByRole('button', { name: 'Make a key' }).click()
    await page.getByRole('alert').waitFor()
    assert.equal(await page.getByPlaceholder('What the key is for').inputValue(), 'of the shop')
  })
  await page.getByLabel('Only from networks').fill('127.0.0.0/8, 192.0.2.0/24')
  await page.getByLabel('Project').selectOption('Shop')
  await page.getByRole('button', { name: 'Make a key' }).click()
  const secret = await page.locator('[data-test=made] .mono').textContent()
  const [made] = await api('GET', '/keys?perPage=1')
  assert.deepEqual([made.label, made.project, made.networks], ['of the shop', project.id, ['127.0.0.0/8', '192.0.2.0/24']])
  assert.ok(made.expiresAt > Date.now() + 89 * 86_400_000 && made.expiresAt < Date.now() + 91 * 86_400_000)
  const row = page.locator('[data-test=keys] tbody tr').filter({ hasText: 'of the shop' })
  assert.match(await row.textContent(), /Shop, 127\.0\.0\.0\/8, 192\.0\.2\.0\/24/)
  assert.equal((await fetch(`${apiUrl}/access`, { headers: { authorization: secret } })).status, 200)
  assert.equal((await fetch(`${apiUrl}/audit`, { headers: { authorization: secret } })).status, 403, 'it is confined to its project')
})

const palette = page.locator('[data-test=palette]')
const options = palette.getByRole('option')
await step('the palette goes to every screen by keyboard alone', async () => {
  await open(page, 'links')
  await page.keyboard.press('Control+K')
  await palette.waitFor()
  const menu = await page.getByRole('navigation').getByRole('listitem').allTextContents()
  await eventually(async () => assert.deepEqual(await options.locator('.name').allTextContents(), menu.map((one) => one.trim())))
  assert.ok(menu.length >= 8, menu.join())
  await accessible(page, 'the palette')
  await shot(page, 'palette')
  for (const [index, name] of menu.entries()) {
    if (!(await palette.isVisible())) await page.keyboard.press('Control+K')
    await palette.waitFor()
    for (let at = 0; at < index; at++) await page.keyboard.press('ArrowDown')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: name.trim(), level: 1 }).waitFor()
    await palette.waitFor({ state: 'detached' })
  }
})

await step('the palette finds what the search finds', async () => {
  await open(page, 'links')
  // From within a field, too; as on a Mac.
  await page.keyboard.press('/')
  await page.keyboard.press('Meta+K')
  await palette.waitFor()
  await page.keyboard.type('fleet')
  await page.keyboard.press('Enter')
  await page.waitForURL(/\/fleet$/)
  // It is opened again once it is closed, which is a moment after the address has changed.
  await palette.waitFor({ state: 'detached' })
  await page.keyboard.press('Control+K')
  await palette.waitFor()
  await page.keyboard.type('nothing that there is')
  await palette.getByText('Nothing found').waitFor()
  await page.keyboard.press('Escape')
  await palette.waitFor({ state: 'detached' })
  // As a reader of codes types: Enter before an answer can be there.
  await page.keyboard.press('Control+K')
  await palette.waitFor()
  await page.keyboard.insertText(code.shortUrl)
  await page.keyboard.press('Enter')
  await page.waitForURL((url) => url.pathname.endsWith(`/${code.shortId}`))
  await palette.waitFor({ state: 'detached' })
  await page.getByRole('button', { name: 'Go to' }).click()
  await palette.waitFor()
  await page.keyboard.type('Canvas bag')
  await eventually(async () => assert.ok((await options.count()) >= 5, await palette.textContent()), 20_000)
  await options.first().click()
  await page.getByRole('heading', { name: /Canvas bag/, level: 1 }).waitFor()
})

await step('the search finds a link, a product and an item, from anywhere and by keyboard alone', async () => {
  await open(page, 'products')
  await page.keyboard.press('/')
  // At once: hits of the first letters alone would be replaced under the arrow.
  await page.keyboard.insertText('Canvas')
  const hits = page.locator('#hits [role=option]')
  await eventually(async () => assert.ok((await hits.count()) >= 5))
  await shot(page, 'search')
  await page.keyboard.press('ArrowDown')
  await page.keyboard.press('Enter')
  await page.waitForURL(/\/items\//)
  await settled(page)
  await page.keyboard.press('/')
  await page.keyboard.type(code.shortUrl)
  await eventually(async () => assert.match(await hits.first().textContent(), new RegExp(code.shortId)))
  await page.keyboard.press('Enter')
  await page.waitForURL(/\/links\//)
  // As a reader of codes types: all at once, and Enter before an answer can be there.
  await open(page, 'team')
  await page.keyboard.press('/')
  await page.keyboard.insertText(`${itemCode.shortUrl}/?utm=1`)
  await page.keyboard.press('Enter')
  await page.waitForURL((url) => url.pathname.endsWith(`/${itemCode.shortId}`))
  // What is opened answers the whole text, and not what it began with.
  await page.keyboard.press('/')
  await page.keyboard.type('Canvas')
  await eventually(async () => assert.ok((await hits.count()) >= 5))
  await page.keyboard.type(' bag 0007')
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'Canvas bag 0007' }).waitFor()
})

// Cases, jobs and imports, webhooks and reactions.
let aCase, job, hook
const rowsOf = (name) => page.locator(`[data-test=${name}] tbody tr`)
/** Says it twice: the second button names what it touches. */
async function twice (first, second) {
  await page.getByRole('button', { name: first, exact: true }).click()
  await page.getByRole('button', { name: second }).click()
}
/** Chooses a file as somebody does who drags it there. */
async function dropFile (name, text) {
  const data = await page.evaluateHandle(([name, text]) => {
    const transfer = new DataTransfer()
    transfer.items.add(new File([text], name, { type: 'text/csv' }))
    return transfer
  }, [name, text])
  await page.locator('[data-test=drop]').dispatchEvent('drop', { dataTransfer: data })
}
const downloaded = async (button) => {
  const [download] = await Promise.all([page.waitForEvent('download'), button.click()])
  return readFileSync(await download.path(), 'utf8').trim().split('\r\n')
}

await step('cases are those of the API, and a filter is in the address', async () => {
  await open(page, './')
  await page.locator('[data-test=attention]').getByRole('link', { name: 'Open cases: 2' }).click()
  await page.waitForURL(/\/cases$/)
  await settled(page)
  const cases = await api('GET', '/authentication/cases?filter=status%3Dopen')
  const words = { grayMarket: 'Diverted', counterfeit: 'Copy' }
  aCase = cases.find((one) => one.kind === 'grayMarket')
  // The screen before stays until this one is loaded.
  await eventually(async () => assert.deepEqual(await rowsOf('cases').locator('td:nth-child(-n+2)').allTextContents(), cases.flatMap((one) => ['Canvas bag 0001', words[one.kind]])))
  await page.getByLabel('Kind').selectOption('grayMarket')
  await eventually(async () => assert.equal(await rowsOf('cases').count(), 1))
  assert.match(await rowsOf('cases').first().textContent(), /Diverted.*Open.*Canvas bag.*Germany/)
  await page.getByLabel('State').selectOption('dismissed')
  await page.getByText('Nothing matches the filter').waitFor()
  assert.match(page.url(), /status=dismissed/)
  await page.reload()
  await settled(page)
  await page.getByText('Nothing matches the filter').waitFor()
  await page.getByRole('button', { name: 'Clear' }).first().click()
  await rowsOf('cases').filter({ hasText: 'Diverted' }).locator('a').first().click()
  await page.waitForURL(/\/cases\/\w{24}$/)
  await page.locator('[data-test=evidence]').getByText(aCase.evidence.reason).waitFor()
  await shot(page, 'case')
})

await step('a case is decided with a reason, and not over the decision of somebody else', async () => {
  const now = () => api('GET', `/authentication/cases/${aCase.id}`)
  await open(page, `cases/${aCase.id}`)
  const reason = page.getByLabel('Reason')
  await twice('Dismiss', /^Dismiss “Diverted” of Canvas bag 0001$/)
  await page.getByText('Say why.').waitFor()
  assert.equal((await now()).status, 'open')
  await reason.fill('A gift to a friend.')
  await api('PUT', `/authentication/cases/${aCase.id}`, { status: 'confirmed', reason: 'Seen in a shop.' })
  await allowing((status) => status === 409, async () => {
    await twice('Dismiss', /^Dismiss “Diverted”/)
    await page.getByText('Somebody else decided on this case').waitFor()
  })
  assert.equal(await reason.inputValue(), 'A gift to a friend.')
  await page.getByText('Seen in a shop.').first().waitFor()
  await twice('Dismiss', /^Dismiss “Diverted”/)
  await eventually(async () => assert.equal(await page.locator('[data-test=state]').textContent(), 'Dismissed'))
  const { status, decision, history } = await now()
  assert.deepEqual([status, decision.reason], ['dismissed', 'A gift to a friend.'])
  assert.equal(await page.locator('[data-test=changes] li').count(), history.length)
  await twice('Open again', /^Open “Diverted” of Canvas bag 0001 again$/)
  await eventually(async () => assert.equal((await now()).status, 'open'))
})

await step('an account without jobs is told how to begin', async () => {
  await open(page, 'jobs')
  await page.getByText('No jobs yet').waitFor()
  assert.match(await page.locator('pre').textContent(), /curl .*\/jobs\/actions/)
})

await step('a dropped file becomes a job, which is followed until it is done; what failed is shown and downloaded', async () => {
  await api('POST', '/actions', { name: '_stocktaking' })
  await open(page, 'jobs')
  await page.getByRole('link', { name: 'Import a file' }).click()
  await page.getByRole('button', { name: 'An action on each item' }).click()
  await dropFile('stock.csv', `code;note\r\n${item.id};"a; ""quoted"" note"\r\nnope;\r\n;nothing\r\n`)
  assert.match(page.url(), /kind=actions/)
  // The page reads the file after the drop.
  await eventually(async () => assert.deepEqual(await rowsOf('first').first().locator('td').allTextContents(), [item.id, 'a; "quoted" note']))
  await page.getByText('Choose a column for: Item.').waitFor()
  await page.getByLabel('Becomes: code').selectOption('item')
  await page.locator('[data-test=check]').click()
  await page.getByText('2 of 3 lines can be imported.').waitFor()
  await page.getByText('Line 4: Item is empty').waitFor()
  await page.getByLabel('Type of action').fill('_stocktaking')
  await page.getByRole('button', { name: 'Create 2 actions' }).click()
  await page.waitForURL(/\/jobs\/\w{24}$/)
  await eventually(async () => assert.equal(await page.locator('[data-test=state]').textContent(), 'Done, with failures'), 20_000)
  job = await api('GET', `/jobs/actions/${new URL(page.url()).pathname.split('/').at(-1)}`)
  assert.equal(job.failedOperationsAmount, 1)
  assert.match(await page.locator('[data-test=progress]').textContent(), /2 of 2/)
  const [entry] = await api('GET', `/jobs/actions/${job.id}/logs`)
  await eventually(async () => assert.deepEqual(await rowsOf('failures').locator('td').allTextContents(), ['nope', entry.message]))
  const lines = await downloaded(page.getByRole('button', { name: 'All as CSV' }))
  assert.deepEqual([lines.length, lines[1].split(',')[0]], [2, 'nope'])
  assert.equal((await api('GET', `/thngs/${item.id}/actions/_stocktaking`)).length, 1)
  assert.deepEqual(await api('GET', '/files'), [], 'what the job has read is removed')
  await shot(page, 'job')
  await open(page, 'jobs')
  await eventually(async () => assert.deepEqual(await rowsOf('jobs').locator('td:nth-child(2)').allTextContents(), ['Done, with failures']))
})

await step('a job that runs is cancelled by two clicks', async () => {
  const file = await api('POST', '/files', { name: 'many.csv', type: 'text/csv', privateAccess: true })
  const put = await fetch(file.uploadUrl, { method: 'PUT', body: `id\n${'nope\n'.repeat(400_000)}` })
  assert.equal(put.status, 200)
  await api('POST', '/jobs/actions', {
    target: 'THNGS', payload: { type: '_stocktaking' }, input: { type: 'FILE', format: 'CSV', contentType: 'PLATFORM_IDS', location: file.contentUrl }
  })
  const [{ id }] = await api('GET', '/jobs/actions')
  await open(page, `jobs/${id}`)
  await page.getByRole('button', { name: 'Cancel the job' }).click()
  assert.notEqual((await api('GET', `/jobs/actions/${id}`)).status, 'CANCELLING', 'one click cancels nothing')
  await page.getByRole('button', { name: /^Stop after [\d,]+ of [\d,]+; what it created stays$/ }).click()
  await eventually(async () => assert.equal(await page.locator('[data-test=state]').textContent(), 'Cancelled'), 20_000)
  assert.equal((await api('GET', `/jobs/actions/${id}`)).status, 'CANCELLED')
  await api('DELETE', `/files/${file.id}`)
})

await step('a file becomes items with links, line by line, and the same file again creates nothing twice', async () => {
  const text = 'name,product,gs1:21,colour,target\nNew bag 1,gs1:01:09506000134352,N1,red,https://example.com/n1\n' +
    'New bag 2,09506000134352,N2,,https://example.com/n2\nNew bag 3,gs1:01:00000000000000,N3,,\nNew bag 4,,,,ftp://example.com/\nNew bag 5,gs1:01:09506000134352,A1B2,,\n'
  const count = async () => (await api('GET', `/thngs?filter=${encodeURIComponent('name~New bag')}`)).length
  const counts = () => page.locator('[data-test=counts] dd').allTextContents()
  for (const turn of ['first', 'again']) {
    await open(page, 'import?kind=items')
    await page.locator('#file').setInputFiles({ name: 'bags.csv', mimeType: 'text/csv', buffer: Buffer.from(text) })
    await page.getByLabel('Becomes: colour').selectOption('customFields')
    await page.locator('[data-test=check]').click()
    await page.getByText('3 of 5 lines can be imported.').waitFor()
    const told = await page.locator('[data-test=checked]').textContent()
    assert.match(told, /Line 4: no product gs1:01:00000000000000.*Line 5: ftp:\/\/example.com\/ is no http or https URL/)
    if (turn === 'first') await shot(page, 'import')
    assert.equal(await count(), turn === 'first' ? 0 : 2, 'a look creates nothing')
    await page.getByRole('button', { name: 'Create 3 items' }).click()
    await page.getByText('The import is finished').waitFor()
    assert.deepEqual(await counts(), ['2', '1', '0', '2'], turn)
    assert.equal(await count(), 2, turn)
    const [head, first] = await downloaded(page.locator('[data-test=results]'))
    assert.equal(head, 'name,product,gs1:21,colour,target,id,shortUrl')
    const made = await api('GET', `/thngs/${first.split(',')[5]}`)
    assert.deepEqual([made.name, made.product, made.identifiers['gs1:21'], made.customFields.colour], ['New bag 1', product.id, 'N1', 'red'])
    // The import waits for no edge.
    await eventually(async () => assert.equal((await scan(first.split(',')[6], '203.0.113.8', 'curl/8')).headers.location, 'https://example.com/n1'))
    assert.equal((await api('GET', `/redirections?platformId=${made.id}`)).length, 1, turn)
    const rejects = await downloaded(page.locator('[data-test=rejects]'))
    assert.equal(rejects.length, 4)
    assert.match(rejects[3], /^New bag 5,.*belongs to the thng/)
    await page.getByRole('button', { name: 'Another import' }).click()
    await page.locator('[data-test=drop]').waitFor()
  }
})

await step('an import goes on over a lost answer and another screen', async () => {
  const lines = Array.from({ length: 1200 }, (_, at) => `Crate ${at}`)
  await open(page, 'import?kind=products')
  await page.locator('#file').setInputFiles({ name: 'crates.csv', mimeType: 'text/csv', buffer: Buffer.from(`name\n${lines.join('\n')}\n`) })
  await page.locator('[data-test=check]').click()
  await allowing((status) => status === 0, async () => {
    // The answer to the first of three parts is lost; the second waits until somebody comes back to look.
    const shown = later()
    let parts = 0
    await page.route(/console\/api\/products$/, async (route) => {
      parts += 1
      if (parts === 1) {
        await route.fetch()
        return await route.abort()
      }
      if (parts === 3) await shown.promise
      await route.continue()
    }, { times: 4 })
    await page.getByRole('button', { name: 'Create 1,200 products' }).click()
    await page.getByText('Waiting: Waymark does not answer.').waitFor()
    await page.getByRole('link', { name: 'Jobs' }).first().click()
    await page.locator('[data-test=running]').getByRole('link', { name: 'Show it' }).click()
    shown.resolve()
    await page.getByText('The import is finished').waitFor({ timeout: 30_000 })
  })
  assert.deepEqual(await page.locator('[data-test=counts] dd').allTextContents(), ['1,200', '0', '0', '0'])
  const ids = []
  for (let after = ''; after !== undefined;) {
    const response = await fetch(`${apiUrl}/products?perPage=100&filter=${encodeURIComponent('name~Crate')}${after}`, { headers: { authorization: operatorKey } })
    ids.push(...(await response.json()).map((one) => one.id))
    const next = decodeURIComponent(response.headers.get('link') ?? '').match(/nextPageToken=([^&>]+)/)?.[1]
    after = next && `&nextPageToken=${encodeURIComponent(decodeURIComponent(next))}`
  }
  assert.equal(new Set(ids).size, 1200, 'none twice, none lost')
  for (let at = 0; at < ids.length; at += 100) await api('DELETE', `/products?ids=${ids.slice(at, at + 100).join(',')}`)
  await page.getByRole('button', { name: 'Another import' }).click()
})

/** Receives what webhooks send; answers as it is told. */
const received = []
let answers = 204
const receiver = http.createServer((request, response) => {
  const parts = []
  request.on('data', (part) => parts.push(part))
  request.on('end', () => {
    received.push(JSON.parse(Buffer.concat(parts).toString()))
    response.writeHead(answers).end(answers === 204 ? '' : 'The shelf is full.')
  })
})
await new Promise((resolve) => receiver.listen(0, '127.0.0.1', resolve))

await step('a webhook is made on the page, tried, and shows what it was sent', async () => {
  await open(page, 'webhooks')
  await page.getByText('No webhooks yet').waitFor()
  assert.match(await page.locator('pre').first().textContent(), /curl .*\/webhooks/)
  await page.getByRole('button', { name: 'New webhook' }).click()
  assert.match(page.url(), /new=webhook/)
  await page.getByLabel('Name', { exact: true }).fill('Warehouse')
  await page.getByLabel('URL', { exact: true }).fill(`http://127.0.0.1:${receiver.address().port}/`)
  await page.getByLabel('Types of events').fill('properties, redirection')
  await page.getByRole('button', { name: 'Create the webhook' }).click()
  await page.waitForURL(/\/webhooks\/\w{24}$/)
  await settled(page)
  hook = (await api('GET', '/webhooks'))[0]
  assert.deepEqual([hook.name, hook.types], ['Warehouse', ['properties', 'redirection']])
  await page.locator('[data-test=ping]').click()
  await page.getByText(/The receiver took it: status 204, after \d+ ms/).waitFor()
  assert.ok(received.some((one) => one.type === 'ping'), JSON.stringify(received))
  await api('PUT', `/thngs/${item.id}/properties/shelf`, [{ value: 'A7' }])
  await eventually(() => assert.ok(received.some((one) => one.type.startsWith('properties'))), 15_000)
  await eventually(async () => {
    await open(page, `webhooks/${hook.id}`)
    const deliveries = await api('GET', `/webhooks/${hook.id}/deliveries`)
    assert.ok(deliveries.length > 0 && deliveries.every((one) => one.status === 'delivered'))
    assert.deepEqual(await rowsOf('deliveries').locator('td:nth-child(2)').allTextContents(), deliveries.map((one) => one.type))
  }, 20_000)
  await page.getByRole('button', { name: 'Details' }).first().click()
  assert.match(await page.locator('[data-test=delivery]').textContent(), /"A7"/)
  assert.match(page.url(), /delivery=/)
  await page.getByRole('button', { name: 'Show the secrets' }).click()
  const [{ secret }] = await api('GET', `/webhooks/${hook.id}/secrets`)
  assert.match(await page.locator('[data-test=secrets]').textContent(), new RegExp(secret.replace(/[+/=]/g, '.')))
  await shot(page, 'webhook')
})

await step('a receiver that takes nothing is called failing, with its answer; what failed is sent again', async () => {
  answers = 503
  await api('PUT', `/thngs/${item.id}/properties/shelf`, [{ value: 'B2' }])
  await eventually(async () => assert.ok((await api('GET', `/webhooks/${hook.id}/deliveries?filter=status%3Dpending`)).some((one) => one.attempts > 0)), 20_000)
  await open(page, 'webhooks')
  await eventually(async () => assert.match(await rowsOf('webhooks').first().textContent(), /Failing/))
  await rowsOf('webhooks').first().locator('a').click()
  await page.locator('[data-test=state]').getByText('Failing').waitFor()
  await page.getByLabel('State').selectOption('pending')
  await eventually(async () => assert.match(await rowsOf('deliveries').first().textContent(), /Waiting.*status 503/))
  await page.getByRole('button', { name: 'Details' }).first().click()
  await page.locator('[data-test=delivery]').getByText('The shelf is full.').waitFor()
  await shot(page, 'webhook-failing')
  await accessible(page, 'a delivery that is open')
  await page.getByRole('button', { name: 'Pause' }).click()
  await page.locator('[data-test=state]').getByText('Paused').waitFor()
  assert.equal((await api('GET', `/webhooks/${hook.id}`)).status, 'paused')
  answers = 204
  await page.getByRole('button', { name: 'Resume' }).click()
  await eventually(async () => assert.equal((await api('GET', `/webhooks/${hook.id}/deliveries?filter=status%3Dpending`)).length, 0), 20_000)
  // The list of those that wait is empty without a reload.
  await page.getByText('Nothing matches the filter').waitFor()
  await page.getByLabel('State').selectOption('delivered')
  // The one that was opened is open still: the address names it.
  await page.locator('[data-test=delivery]').getByText('"B2"').waitFor()
  const before = received.length
  await page.locator('[data-test=delivery]').getByRole('button', { name: 'Send again' }).click()
  await page.getByText('It is sent again.').waitFor()
  await eventually(() => assert.ok(received.length > before && JSON.stringify(received.at(-1)).includes('"B2"')), 15_000)
  await page.reload()
  await page.locator('[data-test=state]').getByText('Active').waitFor()
})

await step('a reaction is made, shows what came of it, is turned off and deleted', async () => {
  await open(page, 'webhooks?new=reaction')
  await page.getByLabel('Name', { exact: true }).fill('Note the check-in')
  await page.getByLabel('Types of events').fill('action.checkins')
  await page.getByLabel('Property').fill('last_type')
  await page.getByRole('button', { name: 'Create the reaction' }).click()
  await page.getByText('Name a member of the event or a fixed value.').waitFor()
  await page.getByLabel('Or a fixed value').fill('checked in')
  await page.getByRole('button', { name: 'Create the reaction' }).click()
  await rowsOf('reactions').getByText('Sets last_type to "checked in"').waitFor()
  await api('POST', `/thngs/${item.id}/actions/checkins`, { type: 'checkins' })
  await eventually(async () => assert.equal((await api('GET', '/reactions'))[0].outcome.done, 1), 15_000)
  await open(page, 'webhooks')
  await eventually(async () => assert.match(await rowsOf('reactions').first().locator('td').nth(4).textContent(), /^1 · 0$/))
  await shot(page, 'webhooks')
  await rowsOf('reactions').getByRole('button', { name: 'Turn off' }).click()
  await rowsOf('reactions').getByText('Off', { exact: true }).waitFor()
  assert.equal((await api('GET', '/reactions'))[0].status, 'disabled')
  await rowsOf('reactions').getByRole('button', { name: 'Delete', exact: true }).click()
  assert.equal((await api('GET', '/reactions')).length, 1, 'one click deletes nothing')
  await page.getByRole('button', { name: 'Not now' }).click()
  assert.equal(await page.getByRole('button', { name: 'Delete “Note the check-in”' }).count(), 0)
  await rowsOf('reactions').getByRole('button', { name: 'Delete', exact: true }).click()
  await page.getByRole('button', { name: 'Delete “Note the check-in”' }).click()
  await page.getByText('No reactions yet').waitFor()
  await api('POST', '/reactions', { name: 'Note the city', types: ['action.implicitScans'], effect: { type: 'property', key: 'last_city', from: 'context.city' } })
})

await step('a webhook is changed, and deleted by two clicks that name it', async () => {
  const other = await api('POST', '/webhooks', { name: 'Old', url: `http://127.0.0.1:${receiver.address().port}/old`, types: ['job'] })
  await open(page, `webhooks/${other.id}`)
  await page.getByRole('button', { name: 'Change' }).click()
  await page.getByLabel('Name', { exact: true }).fill('Older')
  await page.getByLabel('One after the other').check()
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByRole('heading', { name: 'Older', level: 1 }).waitFor()
  const now = await api('GET', `/webhooks/${other.id}`)
  assert.deepEqual([now.name, now.ordered, now.types], ['Older', true, ['job']])
  await twice('Delete', 'Delete “Older” and what it was still to send')
  await page.waitForURL(/\/webhooks$/)
  await eventually(async () => assert.deepEqual((await api('GET', '/webhooks')).map((one) => one.name), ['Warehouse']))
})

const printer = await person('press@example.com', 'printer')
const on = { page, step, api, apiUrl, operatorKey, root, open, settled, accessible, fits, shot, allowing, twice, signedIn, product, code, printer, visitor, home }
const printOrder = await printing(on)
const erasure = await privacy(on)

await step('every page opens by its address, and an unknown one says so', async () => {
  await open(page, 'nothing/here')
  await page.getByText('This page does not exist').waitFor()
  assert.ok(await page.getByRole('navigation').isVisible())
})

const editor = await person('ada@example.com', 'editor')

/** Signs in on a page that shows the form. */
async function signInOn (page, email) {
  await page.getByLabel(/E-[Mm]ail/).fill(email)
  await page.getByLabel(/^Passwor[dt]$/).fill(PASSWORD)
  await page.keyboard.press('Enter')
  await page.getByRole('navigation').waitFor()
}

async function signedIn (email, options) {
  const storageState = sessions.get(email)
  const visit = await visitor({ ...options, storageState })
  await visit.page.goto(root)
  if (!storageState) {
    await signInOn(visit.page, email)
    sessions.set(email, await visit.context.storageState())
  }
  await visit.page.getByRole('navigation').waitFor()
  return visit
}

await step('it works behind a proxy that takes a prefix away', async () => {
  const prefix = '/brand/waymark'
  const proxy = http.createServer((request, response) => {
    if (!request.url.startsWith(`${prefix}/`)) return response.writeHead(404).end()
    const { method, headers } = request
    const up = http.request(apiUrl + request.url.slice(prefix.length), { method, headers }, (answer) => {
      response.writeHead(answer.statusCode, answer.headers)
      answer.pipe(response)
    })
    up.on('error', () => response.destroy())
    response.on('close', () => up.destroy())
    request.pipe(up)
  })
  await new Promise((resolve) => proxy.listen(0, '127.0.0.1', resolve))
  const site = `http://127.0.0.1:${proxy.address().port}`
  home.add(site)
  // Cookies know no port: the session is that of before.
  await page.goto(`${site}${prefix}/console`)
  await settled(page)
  assert.equal(new URL(page.url()).pathname, `${prefix}/console/`)
  await page.getByRole('link', { name: 'Links' }).first().click()
  await page.locator('[data-test=links] tbody a').first().click()
  await page.locator('[data-test=target]').waitFor()
  assert.ok(new URL(page.url()).pathname.startsWith(`${prefix}/console/links/`), page.url())
  await page.reload()
  await settled(page)
  assert.ok(await page.locator('.code img').evaluate(async (image) => { await image.decode(); return image.naturalWidth }))
  assert.equal(await page.locator('details.menu a').first().evaluate((link) => fetch(link.href).then((answer) => answer.status)), 200)
  const stranger = await visitor()
  await stranger.page.goto(`${site}${prefix}/console/items`)
  await signInOn(stranger.page, editor)
  await stranger.page.locator('[data-test=items]').waitFor()
  await stranger.context.close()
  await page.goto(root)
  await settled(page)
  proxy.close()
  proxy.closeAllConnections()
})

await step('somebody signs in and edits by keyboard alone', async () => {
  const { context, page } = await visitor()
  await page.goto(new URL(`links/${code.shortDomain}/${code.shortId}`, root).href)
  await page.getByLabel('E-mail address').waitFor()
  await page.keyboard.press('Tab')
  await page.keyboard.type(editor)
  await page.keyboard.press('Tab')
  await page.keyboard.type(PASSWORD)
  await page.keyboard.press('Enter')
  await page.locator('[data-test=target]').waitFor()
  assert.match(page.url(), /\/links\//, 'the address is kept over the sign-in')
  const within = (selector) => page.evaluate((selector) => document.activeElement?.matches(selector), selector)
  for (let at = 0; at < 40 && !(await within('[data-test=target]')); at++) await page.keyboard.press('Tab')
  await page.keyboard.press('Control+A')
  await page.keyboard.type('https://example.com/by-keyboard')
  await page.keyboard.press('Enter')
  await page.getByText(/live on every edge/).waitFor()
  assert.equal((await api('GET', `/redirections/${code.shortId}`)).defaultRedirectUrl, 'https://example.com/by-keyboard')

  // The session ends elsewhere: the page keeps what was typed, and goes on after the password.
  await allowing((status) => status === 401, async () => {
    await page.locator('[data-test=target]').fill('https://example.com/after-all')
    await page.evaluate((root) => fetch(new URL('api/session', root), { method: 'DELETE' }), root)
    await page.locator('[data-test=save]').click()
    await page.getByRole('dialog').waitFor()
    await shot(page, 'session-over')
    await page.keyboard.type(PASSWORD)
    await page.keyboard.press('Enter')
    await page.getByRole('dialog').waitFor({ state: 'hidden' })
  })
  assert.equal(await page.locator('[data-test=target]').inputValue(), 'https://example.com/after-all')
  await settled(page)
  await page.locator('[data-test=save]').click()
  await page.getByText(/live on every edge/).waitFor()

  // Somebody without a password signs in elsewhere.
  await allowing((status) => status === 401, async () => {
    await page.locator('[data-test=target]').fill('https://example.com/elsewhere')
    await page.evaluate((root) => fetch(new URL('api/session', root), { method: 'DELETE' }), root)
    await page.locator('[data-test=save]').click()
    await page.getByRole('dialog').waitFor()
    await Promise.all([page.waitForResponse(/console\/api\/session$/), page.locator('[data-test=elsewhere]').click()])
    assert.ok(await page.getByRole('dialog').isVisible(), 'nobody has signed in yet')
    const other = await context.newPage()
    await other.goto(root)
    await signInOn(other, editor)
    await other.close()
    await page.locator('[data-test=elsewhere]').click()
    await page.getByRole('dialog').waitFor({ state: 'hidden' })
  })
  assert.equal(await page.locator('[data-test=target]').inputValue(), 'https://example.com/elsewhere')
  await page.getByRole('button', { name: 'Discard' }).click()
  await context.close()
})

await step('a wrong password is refused in words', async () => {
  const { context, page } = await visitor()
  await allowing((status) => status === 401, async () => {
    await page.goto(root)
    await page.getByLabel('E-mail address').fill(editor)
    await page.getByLabel('Password').fill('not the password at all')
    await page.getByRole('button', { name: 'Sign in' }).click()
    assert.match(await page.getByRole('alert').textContent(), /address or the password is wrong/)
  })
  await context.close()
})

await step('a browser that keeps no cookie is told so', async () => {
  const { context, page } = await visitor()
  await allowing((status) => status === 401, async () => {
    await page.route(/console\/api\/session$/, (route) => route.request().method() === 'POST' ? route.fulfill({ json: {} }) : route.continue())
    await page.goto(root)
    await page.getByLabel('E-mail address').fill(editor)
    await page.getByLabel('Password').fill(PASSWORD)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByText('did not keep the cookie').waitFor()
  })
  await context.close()
})

await step('an invitation is accepted, and a second factor turned on and asked for', async () => {
  const { account } = await api('GET', '/access')
  const { invitationCode } = await api('POST', `/accounts/${account}/operatorAccess`, { email: 'new@example.com', role: 'analyst' })
  const { context, page } = await visitor()
  await page.goto(root)
  await page.getByRole('button', { name: 'I have a code' }).click()
  await page.getByLabel('Code', { exact: true }).fill(invitationCode)
  await page.getByLabel('New password').fill(PASSWORD)
  await page.getByRole('button', { name: 'Set the password' }).click()
  await page.getByText('The password is set').waitFor()
  await page.getByLabel('E-mail address').fill('new@example.com')
  await page.getByLabel('Password').fill(PASSWORD)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('navigation').waitFor()
  await open(page, 'team')
  await page.locator('#on-password').fill(PASSWORD)
  await page.getByRole('button', { name: 'Set up' }).click()
  const secret = await page.locator('.narrow .mono').first().textContent()
  await page.locator('#totp-code').fill(await totp(secret, 0))
  await page.getByRole('button', { name: 'Turn on' }).click()
  const recovery = (await page.locator('.narrow pre').textContent()).trim().split('\n')
  assert.equal(recovery.length, 10)
  await page.getByRole('button', { name: 'I have kept them' }).click()
  await page.getByText('10 recovery codes are left').waitFor()
  await page.locator('details.menu summary').click()
  await page.getByRole('button', { name: 'Sign out' }).click()
  await allowing((status) => status === 401, async () => {
    await page.getByLabel('E-mail address').fill('new@example.com')
    await page.getByLabel('Password').fill(PASSWORD)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByText('Enter the code that your authenticator app shows').waitFor()
    await page.getByRole('button', { name: 'Use a recovery code' }).click()
    await page.getByLabel('Recovery code').fill(recovery[0])
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('navigation').waitFor()
  })
  await open(page, 'team')
  await page.getByText('9 recovery codes are left').waitFor()
  await context.close()
})

await shortDomains(on)
const change = await linkChanges({ ...on, editor })

/** A code of an authenticator (RFC 6238). */
async function totp (secret, shift) {
  const bits = [...secret.replace(/=+$/, '')].map((sign) => 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'.indexOf(sign).toString(2).padStart(5, '0')).join('')
  const bytes = Uint8Array.from(bits.match(/.{8}/g), (byte) => parseInt(byte, 2))
  const key = await crypto.subtle.importKey('raw', bytes, { name: 'HMAC', hash: 'SHA-1' }, false, ['sign'])
  const counter = new DataView(new ArrayBuffer(8))
  counter.setBigUint64(0, BigInt(Math.floor(Date.now() / 30_000) + shift))
  const mac = new DataView(await crypto.subtle.sign('HMAC', key, counter.buffer))
  return String((mac.getUint32(mac.getUint8(19) & 15) & 0x7fffffff) % 1_000_000).padStart(6, '0')
}

const SCREENS = ['./?range=24h', './?range=24h&country=DE', 'links', `links/${code.shortDomain}/${code.shortId}`, 'products', `products/${product.id}`, 'items', `items/${item.id}`, 'fleet', 'audit', 'team', 'settings', 'nothing',
  'cases', `cases/${aCase.id}`, 'print', `print/${printOrder.id}`, 'order', 'jobs', `jobs/${job.id}`, 'import', 'webhooks', `webhooks/${hook.id}`, 'privacy', `privacy/${erasure.id}`,
  'domains', `domains/${encodeURIComponent(code.shortDomain)}`, 'pages', 'change', 'changes', `changes/${change.id}`]
const viewer = await person('vic@example.com', 'viewer')

/** What somebody may do who changes nothing of the account: look, copy, narrow a list, try a link, download, and keys and a second factor of one's own. */
const VIEWERS = /^(24 hours|7 days|30 days|90 days|52 weeks|Table|CSV|All countries|Only what needs attention|Copy .*|Filter|Next page|PNG|SVG|PDF|EPS|Make a key|Revoke|Set up|End|All as CSV|Show|Print this page|Count, 7 days)$/
await step('a viewer sees every screen, no button that would be refused, and nothing is refused', async () => {
  const { context, page } = await signedIn(viewer)
  for (const screen of SCREENS) {
    await open(page, screen)
    const buttons = await page.locator('main button').evaluateAll((all) => all.map((one) => one.getAttribute('aria-label') ?? one.textContent.trim()))
    assert.deepEqual(buttons.filter((name) => !VIEWERS.test(name)), [], screen)
    if (screen.startsWith('links/')) {
      assert.equal(await page.locator('[data-test=target]').count(), 0)
      await page.locator('[data-test=history] li').first().waitFor()
      assert.match(await page.locator('main').textContent(), /https:\/\/example.com\/after-all/)
    }
    if (screen === 'audit') await page.getByText('Your role does not show the audit trail').waitFor()
    if (screen === 'settings') {
      assert.equal(await page.locator('[data-test=keys] tbody tr').count(), 1, 'keys of others are not shown')
      await page.getByText('ends with this session').waitFor()
      await page.getByRole('button', { name: 'Revoke' }).click()
      await page.getByRole('button', { name: /^Revoke .* now$/ }).click()
      await page.locator('[data-test=keys]').getByText('Revoked').waitFor()
    }
    if (screen === 'change') await page.getByText('Your role changes no links').waitFor()
    if (screen === 'pages') assert.equal(await page.locator('#page-name').count(), 0)
    if (screen === 'import') await page.getByText('Your role creates nothing').waitFor()
    if (screen === 'order') await page.getByText('Your role orders no codes').waitFor()
    if (screen === 'privacy') await page.locator('[data-test=kept]').waitFor()
    if (screen.startsWith('privacy/')) await page.getByText('Your role does not show erasures').waitFor()
    if (screen.startsWith('webhooks')) await page.getByText('Your role does not show webhooks').waitFor()
    if (screen.startsWith('cases/')) await page.getByText('Your role decides no cases').waitFor()
    if (screen.startsWith('items/')) assert.doesNotMatch(await page.locator('[data-test=actions]').textContent(), /Berlin/, 'a city is personal data')
  }
  await shot(page, 'viewer')
  await context.close()
})

await step('a printer is offered what it may see, and the other screens say why they are empty', async () => {
  const { context, page } = await signedIn(printer)
  const offered = ['Links', 'Print orders', 'Access', 'Settings']
  await eventually(async () => assert.deepEqual((await page.getByRole('navigation').getByRole('listitem').allTextContents()).map((one) => one.trim()), offered))
  await page.keyboard.press('Control+K')
  await page.locator('[data-test=palette]').waitFor()
  await eventually(async () => assert.deepEqual(await page.locator('[data-test=palette] [role=option] .name').allTextContents(), offered))
  await page.keyboard.press('Escape')
  for (const [screen, says] of [['fleet', 'does not show the state of the service'], ['audit', 'does not show the audit trail'], ['./', 'does not show statistics']]) {
    await open(page, screen)
    await page.getByText(says).waitFor()
  }
  await open(page, 'settings')
  assert.equal(await page.locator('[data-test=quotas]').count(), 0)
  assert.equal(await page.getByLabel('Project').count(), 0)
  await context.close()
})

await step('an auditor sees the audit trail, and people by their addresses', async () => {
  const { context, page } = await signedIn(await person('una@example.com', 'auditor'))
  await open(page, 'audit')
  const [mine] = await api('GET', '/audit?filter=resource%3Dproduct&perPage=1')
  const everybody = await api('GET', `/accounts/${(await api('GET', '/access')).account}/operatorAccess?perPage=100`)
  const { email } = everybody.find((one) => one.operator === mine.actor)
  // A field for an id until the names are loaded.
  await page.locator('select#audit-actor').waitFor()
  await page.getByLabel('Who').selectOption({ label: email || mine.actor })
  await page.getByRole('button', { name: 'Filter' }).click()
  await eventually(async () => assert.equal(await page.locator('[data-test=audit] > tbody > tr:first-child > td:nth-child(2)').first().textContent(), email || mine.actor))
  assert.equal(new URL(page.url()).searchParams.get('actor'), mine.actor)
  await context.close()
})

// Each screen is opened once in each language and looked at in two widths and schemes. axe looks at the English ones, and in the long
// form at all. German words are longer: what they need is room on a phone.
const GERMAN = [[1440, 'dark'], [390, 'light']].slice(process.env.WAYMARK_TEST_LONG ? 0 : 1)
await Promise.all([['en-GB', [[1440, 'light'], [390, 'dark']], true], ['de-DE', GERMAN]].map(([locale, looks, isLooked]) => {
  const isAccessible = isLooked || process.env.WAYMARK_TEST_LONG
  const names = looks.map(([width, scheme]) => `${width} px ${scheme}`).join(' and ')
  return step(`every screen at ${names}, ${locale}: it fits${isAccessible ? ', and axe finds nothing' : ''}`, async () => {
    const { context, page } = await signedIn(editor, { locale })
    for (const [at, screen] of SCREENS.entries()) {
      await page.setViewportSize({ width: looks[0][0], height: 900 })
      await open(page, screen)
      assert.equal(await page.evaluate(() => document.documentElement.lang), locale.slice(0, 2))
      for (const [turn, [width, scheme]] of looks.entries()) {
        await page.setViewportSize({ width, height: width === 390 ? 844 : 900 })
        await page.emulateMedia({ colorScheme: scheme })
        await settled(page)
        await shot(page, `${width}-${scheme}-${at}-${screen.split('/')[0].replace(/\W/g, '') || 'overview'}`)
        await fits(page, screen)
        const rules = turn > 0 && !process.env.WAYMARK_TEST_LONG ? LOOKS : undefined
        if (isAccessible) await accessible(page, `${screen} at ${width} px, ${scheme}`, rules)
      }
    }
    await context.close()
  })
}))

await step('the reference of the API sends a request with the session, or asks for a key', async () => {
  await page.goto(new URL('../docs/reference/#tag/access/GET/access', root).href)
  await page.getByRole('heading', { name: 'Waymark' }).first().waitFor()
  await page.getByRole('button', { name: /Test Request/ }).first().click()
  const answered = page.waitForResponse((response) => response.url() === new URL('api/access', root).href)
  await page.getByRole('dialog').getByRole('button', { name: /^Send/ }).first().click()
  assert.equal((await (await answered).json()).account, (await api('GET', '/access')).account)
  await shot(page, 'reference')
  const stranger = await visitor()
  await stranger.page.goto(new URL('../docs/reference/', root).href)
  await stranger.page.getByText('With an API key').first().waitFor()
  assert.equal(await stranger.page.getByText('With your session').count(), 0)
  await stranger.context.close()
})

// No screen of the console, but pages for people all the same: those of the edge, where a code leads nowhere.
const LOGO = Buffer.from('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 8 8"><path d="M0 0h8v8z" fill="#103050"/></svg>').toString('base64')
const OWN_PAGES = {
  name: 'Acme', logo: `data:image/svg+xml;base64,${LOGO}`, link: { url: 'https://example.com/help', label: 'Help' },
  colors: { background: '#fffdf5', text: '#303030', accent: '#8a3b00' }
}
// All kinds have one form: axe looks at one of each.
for (const [width, scheme, locale, lang, pages] of [[1440, 'light', 'de-DE', 'de', {}], [390, 'dark', 'ar-EG', 'ar', OWN_PAGES], [390, 'light', 'ja-JP', 'ja', {}], [1440, 'dark', 'en-GB', 'en', OWN_PAGES]]) {
  await step(`pages where a code leads nowhere at ${width} px, ${scheme}, ${locale}: they fit, and axe finds nothing`, async () => {
    const { account } = await api('GET', '/access')
    const { id } = await api('POST', '/products', { name: 'Pages' })
    const make = (more) => api('POST', '/redirections?wait=edges', { platformId: id, defaultRedirectUrl: 'https://example.com/', ...more })
    const links = [await make({ status: 'paused' }), await make({ validUntil: 1 }), await make({ validFrom: 4102444800000 })]
    const edge = new URL(links[0].shortUrl).origin
    home.add(edge)
    await api('PUT', `/accounts/${account}/pages?wait=edges`, pages)
    const { context, page } = await visitor({ width, height: 844, scheme, locale })
    await allowing((status) => [404, 410].includes(status), async () => {
      for (const [at, url] of [`${edge}/`, `${edge}/NONE`, ...links.map((link) => link.shortUrl)].entries()) {
        await page.goto(url)
        assert.equal(await page.evaluate(() => document.documentElement.lang), lang, url)
        assert.equal(await page.getByRole('heading', { level: 1 }).count(), 1, url)
        assert.equal(await page.getByText('Acme').count(), pages.name ? 1 : 0, url)
        await shot(page, `nowhere-${width}-${scheme}-${at}-${pages.name ?? 'plain'}`)
        await fits(page, url)
        if (at === 1) await accessible(page, `${url} at ${width} px, ${scheme}`)
      }
    })
    await context.close()
  })
}

await step('whoever scans a suspected copy writes to the account, and the case shows it as text', async () => {
  const { account } = await api('GET', '/access')
  await api('PUT', `/accounts/${account}/pages?wait=edges`, { copies: 'suspected', reports: true })
  home.add(new URL(itemCode.shortUrl).origin)
  const { context, page: there } = await visitor({ width: 390, height: 844, scheme: 'dark', locale: 'de-DE' })
  await allowing((status) => status === 403, async () => {
    await there.goto(itemCode.shortUrl)
    await there.getByRole('button', { name: 'Dem Hersteller melden' }).click()
    await there.getByLabel('Wo und von wem').fill('Auf dem <b>Markt</b>.')
    await accessible(there, 'the form of a finder')
    await fits(there, 'the form of a finder')
    await there.getByRole('button', { name: 'Senden' }).click()
    await there.getByRole('heading', { name: 'Vielen Dank' }).waitFor()
  })
  await context.close()
  const [copy] = await api('GET', '/authentication/cases?filter=kind%3Dcounterfeit')
  await open(page, `cases/${copy.id}`)
  await page.locator('[data-test=reports]').getByText('Auf dem <b>Markt</b>.').waitFor()
})

await step('sign-out ends the session', async () => {
  await open(page, 'links')
  await page.locator('details.menu summary').click()
  await accessible(page, 'the menu')
  await page.getByRole('button', { name: 'Sign out' }).click()
  await allowing((status) => status === 401, async () => {
    await page.getByLabel('E-mail address').waitFor()
    assert.equal(await page.evaluate((root) => fetch(new URL('api/session', root)).then((answer) => answer.status), root), 401)
  })
})

await step('no request went to another host, nothing was refused by surprise, and no page logged an error', async () => {
  assert.deepEqual(foreign, [])
  assert.deepEqual(refused, [])
  assert.deepEqual(logged, [])
})

receiver.close()
receiver.closeAllConnections()
await browser.close()
process.exit(steps.finish())

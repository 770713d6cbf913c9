// The console of an account that `waymark demo` has filled: the overview shows its three months, and pictures are made.
//
//   node console-pictures.mjs        (environment: see README.md)

import assert from 'node:assert/strict'
import { mkdirSync, statSync } from 'node:fs'
import { chromium } from 'playwright-core'
import { Steps, eventually, required } from './steps.mjs'

const link = required('WAYMARK_CONSOLE_LINK')
const apiUrl = required('WAYMARK_API_URL').replace(/\/+$/, '')
const operatorKey = required('WAYMARK_OPERATOR_KEY')
const folder = required('WAYMARK_PICTURES')
mkdirSync(folder, { recursive: true })
const root = link.split('#')[0]
/** Most bytes of a picture: pages that show several stay light. */
const MOST_BYTES = 150 * 1024
const WINDOW = { width: 1200, height: 750 }
const DAY_MS = 86_400_000
/** Codes of the order in the picture. */
const CODES = 24

const steps = new Steps(120_000)
const step = (name, body) => steps.step(`pictures: ${name}`, body)

async function api (method, path, body) {
  const response = await fetch(`${apiUrl}${path}`, {
    method, headers: { authorization: operatorKey, accept: 'application/json', ...(body && { 'content-type': 'application/json' }) }, body: body && JSON.stringify(body)
  })
  const text = await response.text()
  assert.ok(response.ok, `${method} ${path}: ${response.status} ${text}`)
  return text ? JSON.parse(text) : undefined
}

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  args: ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync']
})
// Days of UTC, which the test can reckon with.
const options = { viewport: WINDOW, locale: 'en-GB', timezoneId: 'UTC' }
const context = await browser.newContext(options)
const page = await context.newPage()

async function settled (page) {
  await page.waitForFunction(() => document.querySelector('main h1') && !document.querySelector('.skeleton') && !document.querySelector('[aria-busy=true]'))
  await page.waitForFunction(() => [...document.querySelectorAll('.plot')].every((plot) => plot.querySelector('canvas')))
}
async function open (page, path) {
  await page.goto(new URL(path, root).href)
  await settled(page)
}

await step('the overview shows the three months of the demo, by country and by product', async () => {
  await page.goto(link)
  await settled(page)
  await open(page, './?range=90d')
  const from = Math.floor(Date.now() / DAY_MS) * DAY_MS - 89 * DAY_MS
  const { totals, rows } = await api('GET', `/scans/stats?from=${from}&groupBy=country&top=300`)
  assert.ok(totals.scans > 100, `${totals.scans}`)
  await eventually(async () => assert.equal(await page.locator('[data-test=scans]').textContent(), totals.scans.toLocaleString('en-GB')))
  const known = rows.filter((row) => row.country && row.scans > 0).map((row) => row.country)
  assert.ok(known.length >= 8, known.join())
  const marks = page.locator('[data-test=map] [data-country]')
  await eventually(async () => assert.deepEqual((await marks.evaluateAll((all) => all.map((one) => one.dataset.country))).toSorted(), known.toSorted()))
  const products = await api('GET', `/scans/stats?from=${from}&groupBy=product&top=8`)
  const shown = await page.locator('[data-test=products] tbody tr').evaluateAll((rows) => rows.map((row) => row.cells[1].textContent.trim()))
  assert.deepEqual(shown, products.rows.map((row) => row.scans.toLocaleString('en-GB')))
  await page.getByRole('button', { name: 'Table' }).click()
  const days = (await page.locator('figure tbody td:nth-child(2)').allTextContents()).map((text) => Number(text.replaceAll(',', '')))
  assert.equal(days.reduce((sum, count) => sum + count, 0), totals.scans)
  const months = new Set(days.flatMap((count, at) => count > 0 ? [Math.floor(at / 30)] : []))
  assert.deepEqual([...months].toSorted(), [0, 1, 2], 'there are scans in each month')
})

const screens = new Map([['overview', './?range=90d']])
await step('there is a link that was scanned, a case to decide and an order that is printed', async () => {
  const { rows: [first] } = await api('GET', '/scans/stats?groupBy=link&top=1')
  screens.set('link', `links/${first.link}`)
  const [aCase] = await api('GET', '/authentication/cases?filter=status%3Dopen')
  screens.set('case', `cases/${aCase.id}`)
  const links = await api('GET', `/redirections?perPage=${CODES}`)
  const { id } = await api('POST', '/jobs/qr', {
    name: 'Labels of week 12', source: { list: { shortIds: links.map((one) => one.shortId), shortDomain: links[0].shortDomain } }, format: 'pdf-sheets', layout: { size: 'a4-63.5x38.1' }, hri: { text: 'shortId' }
  })
  await eventually(async () => assert.equal((await api('GET', `/jobs/qr/${id}`)).status, 'complete'), 60_000)
  screens.set('print-order', `print/${id}`)
})

for (const scheme of ['light', 'dark']) {
  await step(`each picture is made, ${scheme}, and small`, async () => {
    // The link of the start worked once: the session goes along.
    const own = await browser.newContext({ ...options, colorScheme: scheme, storageState: await context.storageState() })
    const page = await own.newPage()
    assert.equal(screens.size, 4)
    for (const [name, screen] of screens) {
      await open(page, screen)
      const path = `${folder}/${name}-${scheme}.png`
      await page.screenshot({ path, animations: 'disabled' })
      const { size } = statSync(path)
      console.log(`# ${name}-${scheme}.png: ${Math.round(size / 1024)} KiB`)
      assert.ok(size > 5_000 && size <= MOST_BYTES, `${path}: ${size} bytes`)
    }
    await own.close()
  })
}

await browser.close()
process.exit(steps.finish())

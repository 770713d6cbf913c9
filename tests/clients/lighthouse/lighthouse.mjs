// Lighthouse over the console of a running Waymark: the sign-in and the overview, as a phone sees them.
//
//   node lighthouse.mjs     (environment: see ../README.md)
//
// Accessibility and best practices must be perfect. Performance is a figure of the machine, too: it is printed, and compared
// with nothing.

import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import lighthouse from 'lighthouse'
import puppeteer from 'puppeteer-core'
import { Steps, required } from '../steps.mjs'

const link = required('WAYMARK_CONSOLE_LINK')
/** Where whole reports are kept, if somebody wants to read them. */
const reports = process.env.WAYMARK_LIGHTHOUSE
if (reports) mkdirSync(reports, { recursive: true })
const root = link.split('#')[0]
const PERFECT = ['accessibility', 'best-practices']
/** What the performance should be on a phone of some years ago, as Lighthouse slows the page down. */
const FAST = 95

const steps = new Steps(180_000)
const browser = await puppeteer.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  headless: true,
  args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync']
})
const page = await browser.newPage()

/** The report on an address; the session of the page stays. */
async function look (url) {
  const { lhr, report } = await lighthouse(url, { output: 'html', logLevel: 'error', disableStorageReset: true, onlyCategories: ['performance', ...PERFECT] }, undefined, page)
  assert.equal(lhr.runtimeError, undefined, JSON.stringify(lhr.runtimeError))
  return { lhr, report }
}

/** What keeps a category from being perfect, with the places. */
function faults (lhr, category) {
  return lhr.categories[category].auditRefs
    .filter(({ id, weight }) => weight > 0 && lhr.audits[id].score !== null && lhr.audits[id].score < 1)
    .map(({ id }) => `${id}: ${(lhr.audits[id].details?.items ?? []).map((item) => item.node?.selector ?? item.description ?? item.url ?? '').join(', ')}`)
}

async function check (name, url) {
  await steps.step(`lighthouse: ${name}`, async () => {
    const { lhr, report } = await look(url)
    if (reports) writeFileSync(`${reports}/${name}.html`, report)
    const scores = Object.fromEntries(Object.values(lhr.categories).map(({ id, score }) => [id, Math.round((score ?? 0) * 100)]))
    const times = ['first-contentful-paint', 'largest-contentful-paint', 'total-blocking-time', 'cumulative-layout-shift'].map((id) => `${id} ${lhr.audits[id].displayValue}`)
    console.log(`# ${name}: performance ${scores.performance}${scores.performance < FAST ? ` (below ${FAST})` : ''}, ${times.join(', ')}`)
    for (const category of PERFECT) assert.deepEqual([scores[category], faults(lhr, category)], [100, []], category)
  })
}

await check('sign-in', root)
await steps.step('lighthouse: the link signs in', async () => {
  await page.goto(link)
  await page.waitForSelector('nav', { timeout: 20_000 })
})
await check('overview', new URL('./?range=90d', root).href)
await steps.step('lighthouse: the overview was that of somebody who is signed in', async () => {
  await page.goto(new URL('./?range=90d', root).href)
  await page.waitForSelector('[data-test=scans]', { timeout: 20_000 })
})

await browser.close()
process.exit(steps.finish())

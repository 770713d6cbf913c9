// Steps of console.mjs: print orders in the console. What it shows is compared with what the API says.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { eventually } from './steps.mjs'

/** Orders of these tests are drawn within a fraction of this. */
const DRAWN_MS = 60_000
/** So many codes take far longer than two clicks. */
const MANY = 20_000

/** Runs the steps; gives the id of an order that is complete. */
export async function printing (on) {
  const { page, step, api, apiUrl, operatorKey, open, settled, accessible, fits, shot, allowing, twice, product, code, root } = on
  let order
  const idOf = (url) => new URL(url).pathname.split('/').at(-1)
  const next = () => page.locator('[data-test=next]').click()
  const state = (of = page) => of.locator('[data-test=state]')
  const faults = () => page.locator('[data-fault] p').allTextContents()
  /** The faults of the answer to a click on the last button. */
  async function refused () {
    const [answer] = await Promise.all([
      page.waitForResponse((response) => response.request().method() === 'POST' && response.url().endsWith('/jobs/qr')),
      page.locator('[data-test=place]').click()
    ])
    assert.equal(answer.status(), 400)
    return (await answer.json()).errors
  }

  await step('an account without print orders is told how to begin', async () => {
    await open(page, 'print')
    await page.getByText('No print orders yet').waitFor()
    assert.match(await page.locator('pre').textContent(), /curl .*\/jobs\/qr/)
    await open(page, `products/${product.id}`)
    await page.getByRole('link', { name: 'New print order' }).click()
    await page.waitForURL(/\/order\?product=/)
    await settled(page)
    await eventually(async () => assert.equal(await page.getByLabel('Product', { exact: true }).inputValue(), product.id))
  })

  await step('what the API refuses of an order stands at its field, and what was typed stays', async () => {
    await open(page, `order?product=${product.id}`)
    await page.getByLabel('How many').fill('0')
    await page.getByLabel('Where the links lead').fill('ftp://example.com/')
    await page.getByLabel('Serials').selectOption('numbered')
    await page.getByLabel('Before each serial').fill('LB-')
    await next()
    await page.getByLabel('First free label').fill('900')
    await next()
    await next()
    await allowing((status) => status === 400, async () => {
      const errors = await refused()
      assert.ok(errors.length >= 3, errors.join('\n'))
      await page.getByText(`Something is to be put right: ${errors.length}`).waitFor()
      await page.getByText('Step 1 of 4').waitFor()
      const shown = await faults()
      await next()
      await page.getByText('Step 2 of 4').waitFor()
      shown.push(...await faults())
      assert.deepEqual(shown.toSorted(), errors.toSorted())
    })
    assert.equal(await page.getByLabel('First free label').getAttribute('aria-invalid'), 'true')
    await accessible(page, 'faults of an order')
    await shot(page, 'order-faults')
    // Another screen, and back: it is all there.
    await page.getByRole('navigation').getByRole('link', { name: 'Links' }).click()
    await page.locator('[data-test=links]').waitFor()
    await page.goBack()
    await settled(page)
    assert.equal(await page.getByLabel('First free label').inputValue(), '900')
    await page.goBack()
    await eventually(async () => assert.equal(await page.getByLabel('Before each serial').inputValue(), 'LB-'))
  })

  await step('the form offers the sheets and rolls that the API knows', async () => {
    const sizes = async () => (await page.locator('#order-size option').evaluateAll((all) => all.map((one) => one.value))).filter(Boolean)
    const { errors } = await api('POST', '/jobs/qr', { source: { list: { shortIds: [code.shortId] } }, format: 'pdf', layout: { size: 'no size' } }, (status) => status === 400)
    const known = errors.find((text) => text.startsWith('layout.size')).replace(/^.* one of /, '').replace(/\.$/, '').split(', ')
    await open(page, 'order?step=2')
    const sheets = await sizes()
    await page.getByLabel('Format').selectOption('pdf-pages')
    const rolls = await sizes()
    assert.deepEqual([...sheets, ...rolls].toSorted(), known.toSorted())
    assert.equal(await page.getByLabel('First free label').count(), 0, 'is for sheets')
    const formats = await page.locator('#order-format option').evaluateAll((all) => all.map((one) => one.value))
    const refusal = await api('POST', '/jobs/qr', { source: { list: { shortIds: [code.shortId] } }, format: 'cuneiform' }, (status) => status === 400)
    assert.ok(formats.every((format) => refusal.errors.some((text) => text.includes(format))), refusal.errors.join('\n'))
  })

  await step('an order of serials is made in steps and followed until its files are there', async () => {
    await open(page, `order?product=${product.id}`)
    await page.getByLabel('How many').fill('3')
    await page.getByLabel('Where the links lead').fill('https://example.com/{shortId}')
    await page.getByLabel('Serials').selectOption('numbered')
    await page.getByLabel('Before each serial').fill('LB-')
    await page.getByLabel('Digits').fill('4')
    await page.getByLabel('Tags of the items').fill('labels')
    await next()
    await page.getByLabel('Format').selectOption('pdf-sheets')
    await page.getByLabel('Sheet of labels').selectOption('a4-63.5x38.1')
    await page.getByLabel('First free label').fill('20')
    await next()
    await page.getByLabel('Text below the code').selectOption('serial')
    await page.getByLabel('Name of the order').fill('Labels of week 12')
    await next()
    assert.match(await page.locator('[data-test=summary]').textContent(), /Labels of week 12.*Makes 3 items with links: Canvas bag.*LB-.*a4-63\.5x38\.1.*20/s)
    await page.locator('[data-test=place]').click()
    await page.waitForURL(/\/print\/\w{24}$/)
    await eventually(async () => assert.equal(await state().textContent(), 'Complete'), DRAWN_MS)
    order = await api('GET', `/jobs/qr/${idOf(page.url())}`)
    assert.deepEqual([order.name, order.format, order.layout.size, order.layout.start, order.hri.text, order.source.serials.count], ['Labels of week 12', 'pdf-sheets', 'a4-63.5x38.1', 20, 'serial', 3])
    assert.deepEqual([order.serials.first, order.serials.last], ['LB-0001', 'LB-0003'])
    const bars = page.locator('[data-test=progress] [role=progressbar]')
    assert.deepEqual(await bars.evaluateAll((all) => all.map((one) => one.getAttribute('aria-valuenow'))), ['100', '100'])
    await settled(page)

    const files = await api('GET', `/jobs/qr/${order.id}/files`)
    assert.deepEqual((await page.locator('[data-test=files] tbody a').allTextContents()).map((one) => one.trim()), files.map((one) => one.name))
    const receipt = await api('GET', `/jobs/qr/${order.id}/files/receipt.json`)
    const shown = await page.locator('[data-test=receipt] dl').evaluate((list) => Object.fromEntries([...list.querySelectorAll('dt')].map((term) => [term.textContent.trim(), term.nextElementSibling.textContent.trim()])))
    assert.deepEqual([shown['Read back'], shown['Pages, labels or files'], shown.Serials], [String(receipt.decoded), String(receipt.pages), 'LB-0001 to LB-0003'])
    assert.equal(receipt.decoded, 3)
    assert.ok(shown['Width of a module'].startsWith(receipt.smallestModuleMm.toLocaleString('en-GB', { maximumFractionDigits: 3 })), shown['Width of a module'])

    const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('link', { name: 'Download manifest.csv' }).click()])
    const [, ...lines] = readFileSync(await download.path(), 'utf8').trim().split('\r\n')
    assert.deepEqual(lines.map((line) => line.split(',')[1]), ['LB-0001', 'LB-0002', 'LB-0003'])
    assert.deepEqual((await api('GET', `/thngs?filter=${encodeURIComponent('tags=labels')}`)).map((one) => one.identifiers['gs1:21']).toSorted(), ['LB-0001', 'LB-0002', 'LB-0003'])
    await shot(page, 'print-order')

    await open(page, 'print')
    const [row] = await api('GET', '/jobs/qr')
    const cells = await page.locator('[data-test=print-orders] tbody tr').first().locator('td').allTextContents()
    assert.deepEqual([cells[0], cells[1], cells[3]], [row.name, 'Complete', String(row.progress.codes)])
    await page.getByLabel('State').selectOption('failed')
    await page.getByText('Nothing matches the filter').waitFor()
    assert.match(page.url(), /status=failed/)
  })

  await step('a reprint says which codes of which order it has', async () => {
    const { id } = await api('POST', `/jobs/qr/${order.id}/reprint`, { name: 'Torn', codes: ['LB-0002'] })
    await open(page, `print/${id}`)
    await eventually(async () => assert.equal(await state().textContent(), 'Complete'), DRAWN_MS)
    assert.deepEqual(JSON.parse(await page.locator('main pre').textContent()).reprint, { codes: ['LB-0002'] })
    await page.getByRole('link', { name: order.id }).click()
    await page.waitForURL(new RegExp(`/print/${order.id}$`))
    await page.getByRole('heading', { name: 'Labels of week 12' }).waitFor()
  })

  await step('an order whose answer is lost is ordered once, though its repeat is refused first', async () => {
    await open(page, 'order')
    await page.getByLabel('Which codes').selectOption('list')
    await page.getByLabel('Short ids', { exact: true }).fill(code.shortId)
    await next()
    await next()
    await page.getByLabel('Name of the order').fill('Ordered once')
    await next()
    const place = page.locator('[data-test=place]')
    const keys = []
    const noted = (route) => keys.push(route.request().headers()['idempotency-key'])
    await allowing((status) => [0, 429].includes(status), async () => {
      await page.route(/\/jobs\/qr$/, async (route) => { noted(route); await route.fetch(); await route.abort() }, { times: 1 })
      await place.click()
      await page.getByText('Whether it was changed is not known').waitFor()
      // Another screen, and back.
      await page.getByRole('navigation').getByRole('link', { name: 'Links' }).click()
      await page.locator('[data-test=links]').waitFor()
      await page.goBack()
      await settled(page)
      await page.route(/\/jobs\/qr$/, async (route) => { noted(route); await route.fulfill({ status: 429, json: { status: 429, code: 42901, errors: ['Try later.'] } }) }, { times: 1 })
      await place.click()
      await page.getByText('Try later.').waitFor()
    })
    await page.route(/\/jobs\/qr$/, async (route) => { noted(route); await route.continue() }, { times: 1 })
    await place.click()
    await page.waitForURL(/\/print\/\w{24}$/)
    assert.deepEqual([keys.length, new Set(keys).size], [3, 1])
    const made = (await api('GET', '/jobs/qr')).filter((one) => one.name === 'Ordered once')
    assert.deepEqual(made.map((one) => one.id), [idOf(page.url())])
    await eventually(async () => assert.equal(await state().textContent(), 'Complete'), DRAWN_MS)
  })

  await step('an order that is under way is cancelled by two clicks, and removed by two', async () => {
    const { id } = await api('POST', '/jobs/qr', { source: { serials: { product: product.id, count: MANY, form: 'random', defaultRedirectUrl: 'https://example.com/' } }, format: 'svg' })
    await open(page, `print/${id}`)
    await page.getByRole('button', { name: 'Cancel the order' }).click()
    assert.notEqual((await api('GET', `/jobs/qr/${id}`)).status, 'cancelled', 'one click cancels nothing')
    await page.getByRole('button', { name: /^End it after [\d,]+ of 20,000 codes; what it made stays$/ }).click()
    await eventually(async () => assert.equal(await state().textContent(), 'Cancelled'))
    assert.equal((await api('GET', `/jobs/qr/${id}`)).status, 'cancelled')
    // What is left of it is removed in the background: until then it cannot be deleted.
    await allowing((status) => status === 409, () => eventually(async () => {
      await twice('Delete the order', /^Delete it with its files; items and links stay$/)
      await page.waitForURL(/\/print$/, { timeout: 2_000 })
    }, DRAWN_MS))
    await api('GET', `/jobs/qr/${id}`, undefined, (status) => status === 404)
  })

  await step('an order is made by keyboard alone', async () => {
    await open(page, 'order')
    const within = (selector) => page.evaluate((selector) => document.activeElement?.matches(selector), selector)
    const tabTo = async (selector) => {
      for (let at = 0; at < 60 && !(await within(selector)); at++) await page.keyboard.press('Tab')
      assert.ok(await within(selector), selector)
    }
    await tabTo('#order-source')
    // From serials over the filter to the list.
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('ArrowDown')
    await page.locator('#order-list').waitFor()
    await tabTo('#order-list')
    await page.keyboard.type(code.shortId)
    for (let at = 2; at <= 4; at++) {
      await tabTo('[data-test=next]')
      await page.keyboard.press('Enter')
      await page.getByText(`Step ${at} of 4`).waitFor()
      assert.ok(await within('#step'), 'the heading of the step has the focus')
    }
    await tabTo('[data-test=place]')
    await page.keyboard.press('Enter')
    await page.waitForURL(/\/print\/\w{24}$/)
    const { source } = await api('GET', `/jobs/qr/${idOf(page.url())}`)
    assert.deepEqual(source, { list: { shortIds: [code.shortId] } })
  })

  await step('a printer orders codes of links that are there, and is offered nothing that would be refused', async () => {
    const { context, page } = await on.signedIn(on.printer)
    await page.getByRole('navigation').getByRole('link', { name: 'Print orders' }).click()
    await page.locator('[data-test=print-orders]').waitFor()
    await page.getByRole('link', { name: 'New print order' }).click()
    await page.waitForURL(/\/order$/)
    await settled(page)
    assert.deepEqual(await page.locator('#order-source option').evaluateAll((all) => all.map((one) => one.value)), ['filter', 'list'])
    await page.getByLabel('Which codes').selectOption('filter')
    await page.getByLabel('Filter of links').fill(`shortId=${code.shortId}`)
    await page.locator('[data-test=next]').click()
    await page.getByLabel('Format').selectOption('svg')
    await page.locator('[data-test=next]').click()
    await page.getByLabel('Names of the files').fill('{shortId}')
    await page.locator('[data-test=next]').click()
    await page.locator('[data-test=place]').click()
    await page.waitForURL(/\/print\/\w{24}$/)
    await eventually(async () => assert.equal(await state(page).textContent(), 'Complete'), DRAWN_MS)
    await settled(page)
    const buttons = await page.locator('main button').evaluateAll((all) => all.map((one) => one.getAttribute('aria-label') ?? one.textContent.trim()))
    assert.deepEqual(buttons.filter((name) => !/^(Copy Id|Print this page)$/.test(name)), [])
    const response = await fetch(`${apiUrl}/jobs/qr/${idOf(page.url())}`, { headers: { authorization: operatorKey } })
    const made = await response.json()
    assert.deepEqual([made.progress.codes, made.naming, made.format], [1, '{shortId}', 'svg'])
    await context.close()
  })

  await step('the steps of an order fit a phone and the dark', async () => {
    await page.setViewportSize({ width: 390, height: 844 })
    await page.emulateMedia({ colorScheme: 'dark' })
    // The first step is among all screens.
    await open(page, 'order')
    for (let at = 2; at <= 4; at++) {
      await next()
      await page.getByText(`Step ${at} of 4`).waitFor()
      await fits(page, `step ${at}`)
      await accessible(page, `step ${at} on a phone, dark`)
    }
    await page.emulateMedia({ colorScheme: 'light' })
    await page.setViewportSize({ width: 1440, height: 900 })
    assert.ok(page.url().startsWith(root))
  })
  return order
}

// Steps of console.mjs: short domains and visitors' pages. What a preview shows is what an edge shows.

import assert from 'node:assert/strict'
import { eventually } from './steps.mjs'

const LOGO = Buffer.from('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 8 8"><path d="M0 0h8v8z" fill="#103050"/></svg>')

export async function shortDomains (on) {
  const { page, step, api, open, settled, accessible, fits, shot, allowing, twice, code, visitor, home } = on
  const { account } = await api('GET', '/access')
  const domain = code.shortDomain
  const path = `/accounts/${account}/shortDomains/${encodeURIComponent(domain)}`

  await step('a host is claimed, shows what proves it, and is removed by two clicks', async () => {
    await open(page, 'domains')
    const host = page.locator('[data-test=host]')
    await allowing((status) => status === 400, async () => {
      await host.fill('co.uk')
      await page.getByRole('button', { name: 'Claim the host' }).click()
      await page.getByRole('alert').waitFor()
      assert.equal(await host.inputValue(), 'co.uk')
    })
    await host.fill('codes.example.com')
    await page.getByRole('button', { name: 'Claim the host' }).click()
    await page.waitForURL(/\/domains\/codes\.example\.com$/)
    await settled(page)
    const { record, file, state } = await api('GET', `/accounts/${account}/shortDomains/codes.example.com`)
    assert.equal(state, 'pending')
    assert.equal(await page.locator('[data-test=state]').textContent(), 'Waits for its proof')
    const proof = await page.locator('[data-test=proof]').textContent()
    for (const text of [record.name, record.value, file.url, file.content]) assert.ok(proof.includes(text), `${text} in ${proof}`)
    // A claim counts as a check, and so does a look on request: the next one can be made 10 s later.
    await allowing((status) => status === 429, () => eventually(async () => {
      await page.locator('[data-test=verify]').click()
      await page.getByText('Too many requests.').first().waitFor({ timeout: 2_000 })
    }))
    await shot(page, 'domain-claimed')
    await open(page, 'domains')
    const all = await api('GET', `/accounts/${account}/domains?state=all`)
    const shown = await page.locator('[data-test=domains] tbody tr').evaluateAll((rows) => rows.map((row) => [row.dataset.domain, row.querySelector('[data-test=state]').textContent]))
    const words = { pending: 'Waits for its proof', verified: 'Verified', unproven: 'Proof is gone', refused: 'Another account has it' }
    assert.deepEqual(shown.toSorted(), all.map((one) => [one.domain, words[one.state]]).toSorted())
    await page.getByRole('link', { name: 'codes.example.com' }).click()
    await twice('Remove the domain', 'Remove codes.example.com')
    await page.waitForURL(/\/domains$/)
    await api('GET', `/accounts/${account}/shortDomains/codes.example.com`, undefined, (status) => status === 404)
  })

  await step('what a domain serves beside links is set, and not over what somebody else set', async () => {
    await open(page, `domains/${encodeURIComponent(domain)}`)
    const [robots, links, save] = [page.getByLabel('Robots'), page.locator('#asset-links'), page.locator('[data-test=save]')]
    await links.fill('[{')
    await page.getByText('This is no JSON').waitFor()
    assert.ok(await save.isDisabled())
    await links.fill('[{"relation":["delegate_permission/common.handle_all_urls"]}]')
    await robots.selectOption('all')
    assert.ok(await page.locator('[data-test=in-urls]').isDisabled())
    await page.locator('#path-prefix').fill('shop/go')
    await save.click()
    await page.getByRole('status').getByText('Saved').waitFor()
    const { robots: served, assetLinks, pathPrefix } = await api('GET', path)
    assert.deepEqual([served, assetLinks, pathPrefix], ['all', [{ relation: ['delegate_permission/common.handle_all_urls'] }], 'shop/go'])
    await api('PUT', path, { assetLinks: null })
    await robots.selectOption('none')
    await save.click()
    const conflict = page.locator('[data-test=conflict]')
    await conflict.getByText(/Changed .* by /).waitFor()
    assert.equal((await api('GET', path)).robots, 'all')
    await accessible(page, 'a domain that somebody else changed')
    await page.getByRole('button', { name: 'Discard' }).click()
    assert.deepEqual([await robots.inputValue(), await links.inputValue()], ['all', ''])
    await robots.selectOption('none')
    await save.click()
    await page.getByRole('status').getByText('Saved').waitFor()
    assert.equal((await api('GET', path)).robots, 'none')
  })

  /** What somebody sees of a page: of a preview, or of the edge's own. */
  const look = (page, frame) => page.evaluate((frame) => {
    const at = frame ? document.querySelector(frame).contentDocument : document
    const style = (element) => at.defaultView.getComputedStyle(element)
    const [h1, button] = [at.querySelector('h1'), at.querySelector('.k')]
    return {
      texts: [h1, at.querySelector('h1 + p'), at.querySelector('.n'), button, at.querySelector('footer p')].map((one) => one.textContent),
      colors: [style(at.body).backgroundColor, style(h1).color, style(button).backgroundColor, style(button).color, style(at.querySelector('img')).backgroundColor],
      sizes: [style(h1).fontSize, style(button).padding, style(at.querySelector('footer')).fontSize],
      logo: at.querySelector('img').src,
      width: at.querySelector('img').naturalWidth > 0
    }
  }, frame)

  await step('visitors’ pages are drawn as an edge draws them, light and dark, and their contrast is minded', async () => {
    await open(page, 'pages')
    const save = page.locator('[data-test=save]')
    await page.locator('#page-name').fill('Acme')
    await page.locator('#logo').setInputFiles({ name: 'logo.svg', mimeType: 'image/svg+xml', buffer: LOGO })
    await page.locator('[data-test=own-colors]').check()
    await page.locator('#color-background').fill('#fffdf5')
    await page.locator('#color-text').fill('#a0a0a0')
    await page.locator('[data-contrast=text]').getByText('too low').waitFor()
    assert.ok(await save.isDisabled())
    await page.locator('#color-text').fill('#303030')
    await page.locator('#color-accent').fill('#8a3b00')
    await page.locator('#page-link').fill('https://example.com/help')
    await page.locator('#page-label').fill('Help')
    await page.locator('#language-of').selectOption('de')
    await page.locator('#kind').selectOption('root')
    await page.locator('#heading').fill('Taschen')
    await page.locator('#text').fill('Scannen Sie den Code in Ihrer Tasche.')
    await save.click()
    await page.locator('[data-test=saved]').getByText(/live on every edge/).waitFor()
    const stored = await api('GET', `/accounts/${account}/pages`)
    assert.deepEqual(stored, {
      name: 'Acme', logo: `data:image/svg+xml;base64,${LOGO.toString('base64')}`, colors: { background: '#fffdf5', text: '#303030', accent: '#8a3b00' },
      link: { url: 'https://example.com/help', label: 'Help' }, texts: { de: { root: { title: 'Taschen', text: 'Scannen Sie den Code in Ihrer Tasche.' } } }
    })
    const edge = new URL(code.shortUrl).origin
    home.add(edge)
    for (const scheme of ['light', 'dark']) {
      const there = await visitor({ scheme, locale: 'de-DE' })
      await allowing((status) => status === 404, async () => {
        for (const [kind, url] of [['root', `${edge}/`], ['unknown', `${edge}/NONE`]]) {
          await page.locator('#kind').selectOption(kind)
          await there.page.goto(url)
          const expected = await look(there.page)
          await eventually(async () => assert.deepEqual(await look(page, `[data-test=${scheme}]`), expected, `${kind}, ${scheme}`), 5_000)
        }
      })
      await there.context.close()
    }
    await page.locator('#language-of').selectOption('zh-Hant')
    await eventually(async () => assert.equal((await look(page, '[data-test=light]')).texts[0], '此 QR 碼沒有對應的頁面', 'traditional script'), 5_000)
    await accessible(page, 'visitors’ pages')
    await shot(page, 'visitor-pages')
    await page.setViewportSize({ width: 390, height: 844 })
    await fits(page, 'visitors’ pages')
    await page.setViewportSize({ width: 1440, height: 900 })
  })

  await step('of two who change visitors’ pages the second sees both', async () => {
    await page.locator('#page-name').fill('Mine')
    // Another screen, and back: it is still there, over the state that it was typed over.
    await open(page, 'domains')
    await open(page, 'pages')
    assert.equal(await page.locator('#page-name').inputValue(), 'Mine')
    await api('PUT', `/accounts/${account}/pages`, { name: 'Rival' })
    const conflict = page.locator('[data-test=conflict]')
    await allowing((status) => status === 412, async () => {
      await page.locator('[data-test=save]').click()
      await conflict.getByText(/Changed .* by /).waitFor()
    })
    assert.match(await conflict.textContent(), /Rival.*Mine/s)
    assert.equal((await api('GET', `/accounts/${account}/pages`)).name, 'Rival')
    await conflict.getByRole('button', { name: 'Take theirs' }).click()
    assert.equal(await page.locator('#page-name').inputValue(), 'Rival')
    await page.locator('#page-name').fill('')
    await page.locator('[data-test=save]').click()
    await page.locator('[data-test=saved]').getByText(/live on every edge/).waitFor()
    assert.deepEqual(await api('GET', `/accounts/${account}/pages`), {})
  })
}

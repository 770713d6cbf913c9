// Steps of console.mjs: changes of many links, and scans by rule. What it shows is compared with what the API says.

import assert from 'node:assert/strict'
import { eventually } from './steps.mjs'

/** Runs the steps; gives a change that is complete. */
export async function linkChanges (on) {
  const { page, step, api, open, accessible, shot, product, code, editor, signedIn } = on
  let change
  const { account } = await api('GET', '/access')
  const targets = async () => (await api('GET', '/redirections?filter=tags%3Dspring')).map((one) => one.defaultRedirectUrl)
  const idOf = (url) => new URL(url).pathname.split('/').at(-1)
  /** Says it twice: the second button names what it touches. */
  async function twice (page, first, second) {
    await page.getByRole('button', { name: first, exact: true }).click()
    await page.getByRole('button', { name: second, exact: true }).click()
  }
  const isDone = (page) => eventually(async () => assert.equal(await page.locator('[data-test=state]').textContent(), 'Done'))

  await step('many links are counted and shown, changed by two clicks, and given back what they had', async () => {
    for (let turn = 0; turn < 3; turn++) await api('POST', '/redirections', { platformId: product.id, defaultRedirectUrl: 'https://example.com/spring', tags: ['spring'] })
    await open(page, 'links?q=spring')
    await page.locator('[data-test=change]').click()
    await page.waitForURL(/\/change\?q=spring$/)
    await page.locator('#change-filter').fill('tags=spring')
    await page.locator('#change-target').fill('https://example.com/summer')
    await page.locator('#change-add').fill('summer')
    await page.locator('[data-test=count]').click()
    await page.locator('[data-test=found]').getByText('Links: 3').waitFor()
    const rows = page.locator('[data-test=sample] tbody tr')
    assert.equal(await rows.count(), 3)
    assert.match(await rows.first().textContent(), /example\.com\/spring.*example\.com\/summer/s)
    assert.deepEqual(await targets(), Array(3).fill('https://example.com/spring'), 'a look changes nothing')
    await accessible(page, 'a change that is counted')
    await shot(page, 'link-change-counted')
    // What was counted is not what is asked for any more.
    await page.locator('#change-title').fill('Summer')
    assert.equal(await page.getByRole('button', { name: 'Change 3 links' }).count(), 0)
    await page.locator('[data-test=count]').click()
    await twice(page, 'Change 3 links', 'Change 3 links now')
    await page.waitForURL(/\/changes\/\w{24}$/)
    await isDone(page)
    change = await api('GET', `/jobs/redirections/${idOf(page.url())}`)
    assert.deepEqual([change.progress.changed, change.expect, change.selection], [3, 3, { q: 'spring', filter: 'tags=spring' }])
    assert.equal(await page.locator('[data-test=changed]').textContent(), '3')
    assert.deepEqual(await targets(), Array(3).fill('https://example.com/summer'))
    await shot(page, 'link-change')
    await twice(page, 'Undo', 'Give 3 links back what they had')
    await page.waitForURL((url) => idOf(url) !== change.id)
    await page.getByRole('link', { name: 'a change' }).waitFor()
    await isDone(page)
    assert.deepEqual(await targets(), Array(3).fill('https://example.com/spring'))
    await open(page, 'changes')
    const all = await api('GET', '/jobs/redirections')
    assert.equal(all.length, 2)
    assert.deepEqual(await page.locator('[data-test=changes] tbody tr a').evaluateAll((links) => links.map((link) => new URL(link.href).pathname.split('/').at(-1))), all.map((one) => one.id))
  })

  await step('a change that needs approval is approved by somebody else, and lists what it left as it is', async () => {
    await api('PUT', `/accounts/${account}`, { approveBulkChanges: true })
    const [link] = await api('GET', '/redirections?filter=tags%3Dspring')
    // It would end before it begins.
    await api('PUT', `/redirections/${link.shortId}`, { defaultRedirectUrl: link.defaultRedirectUrl, validFrom: 2_000_000_000_000 })
    const { id } = await api('POST', '/jobs/redirections', { filter: 'tags=spring', patch: { validUntil: 1_900_000_000_000 } })
    await open(page, `changes/${id}`)
    await page.getByText('Another operator must approve it.').waitFor()
    const { context, page: other } = await signedIn(editor)
    await open(other, `changes/${id}`)
    await twice(other, 'Approve', 'Change 3 links')
    await isDone(other)
    const conflicts = await api('GET', `/jobs/redirections/${id}/conflicts`)
    assert.equal(conflicts.length, 1)
    await eventually(async () => assert.deepEqual(await other.locator('[data-test=conflicts] tbody td').allTextContents(), conflicts.flatMap((one) => [`${one.shortDomain}/${one.shortId}`, one.reason])))
    await context.close()
    await api('PUT', `/accounts/${account}`, { approveBulkChanges: false })
  })

  await step('scans of a link are counted by the rule that decided', async () => {
    await open(page, `links/${code.shortDomain}/${code.shortId}`)
    await page.locator('[data-test=count-rules]').click()
    const cells = page.locator('[data-test=rule-counts] tbody td.number')
    await cells.first().waitFor()
    const { rules, withoutRule } = await api('GET', `/redirections/${code.shortId}/ruleStatistics`)
    assert.ok(withoutRule.scans > 0)
    assert.deepEqual(await cells.allTextContents(), [...rules, withoutRule].flatMap((one) => [one.scans, one.robots]).map((count) => count.toLocaleString('en-GB')))
  })
  return change
}

// Steps of console.mjs: the screen of privacy. What it shows is compared with what the API says.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { eventually } from './steps.mjs'

/** Runs the steps; gives an erasure that is done. */
export async function privacy (on) {
  const { page, step, api, apiUrl, operatorKey, open, settled, accessible, shot } = on
  let erasure

  await step('how much is kept of people, and for how long, is set on the screen of privacy', async () => {
    const { account } = await api('GET', '/access')
    const before = await api('GET', `/accounts/${account}`)
    await open(page, 'settings')
    await page.getByRole('link', { name: 'How much is kept of people' }).click()
    await page.waitForURL(/\/privacy$/)
    await settled(page)
    const form = page.locator('[data-test=personal-data]')
    const [kept, days, scans] = ['Kept of whoever scans', 'Cut what is left after days', 'Remove whole scans after days'].map((name) => form.getByLabel(name))
    const save = () => Promise.all([
      page.waitForResponse((answer) => answer.request().method() === 'PUT' && answer.url().includes('/accounts/') && answer.ok()),
      form.getByRole('button').click()
    ])
    assert.deepEqual([await kept.inputValue(), await scans.inputValue()], [before.personalData, String(before.scanRetentionDays)])
    await kept.selectOption('none')
    await days.fill('90')
    await scans.fill('200')
    await save()
    await form.getByRole('status').waitFor()
    const saved = await api('GET', `/accounts/${account}`)
    assert.deepEqual([saved.personalData, saved.personalDataDays, saved.scanRetentionDays], ['none', 90, 200])
    await kept.selectOption(before.personalData)
    await days.fill('')
    await scans.fill(String(before.scanRetentionDays))
    await save()
    const after = await api('GET', `/accounts/${account}`)
    assert.deepEqual([after.personalData, after.personalDataDays, after.scanRetentionDays], [before.personalData, undefined, before.scanRetentionDays])
  })

  await step('the data of a user is erased by two clicks that name it, and the receipt says what was changed', async () => {
    const project = await api('POST', '/projects', { name: 'App' })
    const application = await api('POST', `/projects/${project.id}/applications`, { name: 'App' })
    const as = async (key, path, body) => {
      const response = await fetch(`${apiUrl}${path}`, { method: 'POST', headers: { authorization: key, 'content-type': 'application/json' }, body: JSON.stringify(body) })
      assert.equal(response.status, 201, `${path}: ${response.status}`)
      return await response.json()
    }
    const user = await as(application.appApiKey, '/auth/evrythng/users?anonymous=true', {})
    const thing = await api('POST', `/thngs?project=${project.id}`, { name: 'Seen by a user' })
    const action = await as(user.evrythngApiKey, '/actions/scans', { thng: thing.id })
    const stored = () => api('GET', `/actions/scans/${action.id}`)
    assert.equal((await stored()).user, user.evrythngUser)

    await open(page, 'privacy')
    const form = page.locator('[data-test=erase]')
    await form.getByLabel('Id', { exact: true }).fill('nobody')
    await form.getByRole('button', { name: 'Erase', exact: true }).click()
    await form.getByText('Give an id of 24 characters.').waitFor()
    const count = async () => (await api('GET', '/privacy/erasures')).length
    const before = await count()
    await form.getByLabel('Id', { exact: true }).fill(user.evrythngUser)
    await form.getByRole('button', { name: 'Erase', exact: true }).click()
    assert.equal(await count(), before, 'one click erases nothing')
    await accessible(page, 'an erasure that is asked about')
    await form.getByRole('button', { name: `Erase for good what is stored of the user ${user.evrythngUser}` }).click()
    await page.waitForURL(/\/privacy\/\w{24}$/)
    await eventually(async () => assert.equal(await page.locator('[data-test=state]').textContent(), 'Done'), 60_000)
    erasure = await api('GET', `/privacy/erasures/${new URL(page.url()).pathname.split('/').at(-1)}`)
    assert.deepEqual([erasure.user, erasure.status], [user.evrythngUser, 'COMPLETED'])
    assert.ok(erasure.rows.actions >= 1, JSON.stringify(erasure.rows))
    assert.equal((await stored()).user, undefined)
    assert.match(await page.locator('[data-test=receipt]').textContent(), new RegExp(`${user.evrythngUser}.*You`, 's'))
    const shown = await page.locator('[data-test=rows] tbody td:nth-child(2)').allTextContents()
    assert.deepEqual(shown, ['actions', 'scans', 'webhookMessages', 'reactionTasks', 'unknownScans', 'profiles', 'standings'].map((name) => String(erasure.rows[name])))
    await shot(page, 'erasure')

    await open(page, 'privacy')
    const cells = await page.locator('[data-test=erasures] tbody tr').first().locator('td').allTextContents()
    assert.match(cells[1], new RegExp(`A user of an application ${user.evrythngUser}`))
    assert.equal(cells[2], 'Done')
    await page.getByLabel('State').selectOption('EXECUTING')
    await page.getByText('Nothing matches the filter').waitFor()
    assert.match(page.url(), /status=EXECUTING/)
  })

  await step('actions are exported as Parquet and as lines', async () => {
    await open(page, 'privacy')
    const form = page.locator('[data-test=export]')
    // Types come after the form.
    await form.getByLabel('Type').locator('option[value=scans]').waitFor({ state: 'attached' })
    await form.getByLabel('Type').selectOption('scans')
    const fetched = async (name) => {
      const [download] = await Promise.all([page.waitForEvent('download'), form.getByRole('button', { name }).click()])
      return [download.suggestedFilename(), readFileSync(await download.path())]
    }
    const [name, bytes] = await fetched('Parquet')
    assert.equal(name, 'scans.parquet')
    assert.deepEqual([bytes.subarray(0, 4).toString(), bytes.subarray(-4).toString()], ['PAR1', 'PAR1'])
    const of = async (path) => (await (await fetch(`${apiUrl}${path}`, { headers: { authorization: operatorKey } })).text()).trim().split('\n').filter(Boolean)
    const ids = (lines) => lines.map((line) => JSON.parse(line).id)
    const lines = async () => ids((await fetched('Lines of JSON'))[1].toString().trim().split('\n').filter(Boolean))
    const all = ids(await of('/actions/scans/export'))
    assert.ok(all.length > 0)
    assert.deepEqual(await lines(), all)
    await form.getByLabel('From').fill('2020-01-01')
    await form.getByLabel('Until').fill('2020-01-31')
    assert.deepEqual(await lines(), [], 'nothing happened then')
  })
  return erasure
}

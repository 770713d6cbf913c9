// Changes of many links: their states, and the request that a form makes.

import type { Schemas } from '../api/client'
import type { ChangeKey } from '../messages/changes'
import { timeOf } from './times'

export type LinkChange = Schemas['LinkChangeDocument']
export const CHANGE_STATES: Record<string, [ChangeKey, string]> = {
  awaitingApproval: ['awaitingApproval', 'warn'], waiting: ['waiting', ''], running: ['running', 'warn'], complete: ['complete', 'good'], failed: ['failed', 'bad'], cancelled: ['cancelled', '']
}
const UNDER_WAY = ['awaitingApproval', 'waiting', 'running']
export const isUnderWay = (change: LinkChange): boolean => UNDER_WAY.includes(change.status)

export const emptyForm = () => ({
  q: '', filter: '', of: '', domain: '',
  target: '', title: '', add: '', remove: '', status: '', code: '', query: '', from: '', noFrom: false, until: '', noUntil: false, ended: '', noEnded: false
})
export type Form = ReturnType<typeof emptyForm>

const list = (text: string): string[] => text.split(',').map((one) => one.trim()).filter(Boolean)

/** What is changed, as the API takes it; empty where nothing is. */
export function patchOf (form: Form): Record<string, unknown> {
  const [add, remove] = [list(form.add), list(form.remove)]
  return {
    ...(form.target.trim() && { defaultRedirectUrl: form.target.trim() }),
    ...(form.title.trim() && { title: form.title.trim() }),
    ...((add.length > 0 || remove.length > 0) && { tags: { ...(add.length > 0 && { add }), ...(remove.length > 0 && { remove }) } }),
    ...(form.status && { status: form.status }),
    ...(form.code && { statusCode: Number(form.code) }),
    ...(form.query && { forwardQuery: form.query === 'yes' }),
    ...(form.noFrom ? { validFrom: null } : form.from && { validFrom: timeOf(form.from) }),
    ...(form.noUntil ? { validUntil: null } : form.until && { validUntil: timeOf(form.until) }),
    ...(form.noEnded ? { endedUrl: null } : form.ended.trim() && { endedUrl: form.ended.trim() })
  }
}

/** Which links, as the API takes it: without a condition all of them. */
export function selectionOf ({ q, filter, of, domain }: Form): Record<string, string> {
  const given = { q: q.trim(), filter: filter.trim(), platformId: of.trim(), domain }
  const chosen = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== ''))
  return Object.keys(chosen).length > 0 ? chosen : { filter: 'createdAt>0' }
}

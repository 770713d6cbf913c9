// What has an id or a name: links by their short URL, products and items.

import { api, body, literal, type ApiError, type Schemas } from '../api/client'
import type { Sign } from '../parts/Icon.svelte'
import type { PlainKey } from './i18n.svelte'
import { isId } from './ids'
import { href } from './router.svelte'
import { can } from './session.svelte'

export interface Hit { href: string, name: string, detail: string, kind: PlainKey, sign: Sign }
/** How long nothing is typed before something is asked. */
export const WAIT_MS = 200

/** What is no id and no name, or is not for this person, is not found; the rest is a fault. */
function none (error: ApiError): undefined {
  if (![400, 403, 404].includes(error.status)) throw error
}

export async function find (wanted: string, signal: AbortSignal): Promise<Hit[]> {
  const query = { perPage: 5, ...(isId(wanted) ? { ids: wanted } : { filter: `name~${literal(wanted)}` }) }
  // A whole short URL, or what may be the short id in it: no name, which has small letters and no digit.
  const parts = wanted.replace(/^https?:\/\//i, '').replace(/[?#].*$/, '').replace(/\/$/, '').split('/')
  const shortId = parts.at(-1) ?? ''
  const domain = parts.length > 1 ? parts[0] : undefined
  // What stands before it may be part of the short id, or a prefix of the domain.
  const shortIds = [...new Set([parts.slice(1).join('/'), shortId])].filter((id) => /^[\w-]+(\/[\w-]+){0,3}$/.test(id) && id.length >= 2 && id.length <= 64)
  const mayBeLink = domain !== undefined || (shortId.length >= 4 && (/\d/.test(shortId) || shortId === shortId.toUpperCase()))
  const one = (shortId: string) => (body(api.GET('/redirections/{shortId}', { params: { path: { shortId }, query: domain ? { domain } : {} }, signal })) as Promise<Schemas['RedirectionDocument']>).catch(none)
  const [links, products, items] = await Promise.all([
    can('redirections', 'read') && mayBeLink ? Promise.all(shortIds.map(one)) : undefined,
    can('products', 'list') ? body(api.GET('/products', { params: { query }, signal })).catch(none) : undefined,
    can('thngs', 'list') ? body(api.GET('/thngs', { params: { query }, signal })).catch(none) : undefined
  ])
  const link = links?.find((found) => found !== undefined)
  return [
    ...(link ? [{ href: href(['links', link.shortDomain, link.shortId]), name: `${link.shortDomain}/${link.shortId}`, detail: link.defaultRedirectUrl, kind: 'link' as const, sign: 'links' as const }] : []),
    ...(products ?? []).map((row) => ({ href: href(['products', row.id]), name: row.name, detail: row.id, kind: 'product' as const, sign: 'products' as const })),
    ...(items ?? []).map((row) => ({ href: href(['items', row.id]), name: row.name, detail: row.id, kind: 'item' as const, sign: 'items' as const }))
  ]
}

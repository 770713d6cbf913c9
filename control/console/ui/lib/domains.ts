// Short domains: their states and how they look, and changes of their settings.

import { api, body, whole } from '../api/client'
import type { DomainKey } from '../messages/domains'
import { session } from './session.svelte'

export const DOMAIN_STATES: Record<string, [DomainKey, string, DomainKey]> = {
  pending: ['pending', '', 'pendingHint'], verified: ['verified', 'good', 'verifiedHint'], unproven: ['unproven', 'warn', 'unprovenHint'], refused: ['refused', 'bad', 'refusedHint']
}

export const CERTIFICATE_STATES: Record<string, [DomainKey, string]> = {
  pending: ['certificatePending', ''], valid: ['certificateValid', 'good'], failed: ['certificateFailed', 'bad'], off: ['certificateOff', '']
}

const pathOf = (domain: string) => ({ id: session.account, domain })

/** A domain, and the tag of its settings. */
export async function readDomain (host: string) {
  const { data, response } = await whole(api.GET('/accounts/{id}/shortDomains/{domain}', { params: { path: pathOf(host) } }))
  return { found: data, tag: response.headers.get('etag') ?? '' }
}

/** Changes settings of a domain; refused (412) when they are not those of the tag any more. */
export const changeDomain = (host: string, tag: string, change: object) =>
  body(api.PUT('/accounts/{id}/shortDomains/{domain}', { params: { path: pathOf(host), header: { 'If-Match': tag } }, body: change as never }))

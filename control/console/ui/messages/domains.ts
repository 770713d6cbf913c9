// Words of short domains: how long their redirects may be kept.
import { block } from '../lib/i18n.svelte'

export const en = {
  age: 'Redirects are kept for', ageOf: 'Seconds for which redirects of {domain} are kept', seconds: 's', notKept: 'not kept', ageSaved: 'Saved',
  ageConflict: 'Somebody else changed this meanwhile; it is now: {now}. What you typed is still here; save again to replace it.',
  ageHint: 'Seconds from 0 to 86,400 for which browsers and shared caches may keep a redirect; empty: they must not. Whoever keeps one asks no edge: its scans are not counted, and a change, a pause or a take-down is seen that much later.'
} as const

export const domains = await block(en, { de: async () => (await import('./domains.de')).de })

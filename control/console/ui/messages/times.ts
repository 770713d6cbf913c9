// Words of the times of links: when one is open, and why it is not.
import { block } from '../lib/i18n.svelte'

export const en = {
  times: 'When it leads there', validFrom: 'From', validUntil: 'Until', pausedNow: 'Paused: it does not lead to its target for now', endedUrl: 'Where it leads before, after, and while it is paused',
  endedHint: 'Without an address whoever scans it gets a short page.', always: 'Always', untilEver: 'without an end', localTime: 'In the time zone of this browser.',
  active: 'Active', scheduled: 'Scheduled', ended: 'Ended', paused: 'Paused'
} as const

export const times = await block(en, { de: async () => (await import('./times.de')).de })

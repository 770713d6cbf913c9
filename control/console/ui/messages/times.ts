// Words of the times of links: when one is open, and why it is not; of status codes, and of how its code looks.
import { block } from '../lib/i18n.svelte'

export const en = {
  times: 'When and how it leads there', validFrom: 'From', validUntil: 'Until', pausedNow: 'Paused: it does not lead to its target for now', endedUrl: 'Where it leads before, after, and while it is paused',
  endedHint: 'Without an address whoever scans it gets a short page.', always: 'Always', untilEver: 'without an end', localTime: 'In the time zone of this browser.',
  statusCode: 'Status code of the redirect', code307: '307: temporary', code302: '302: temporary, for old programs', code301: '301: permanent', code308: '308: permanent, keeps the method',
  statusCodeHint: 'Choose a permanent one only if the target stays: browsers and search engines may remember the target and not ask again. A later change, pause or end does not reach them, and their scans are not counted.',
  maxScans: 'Ends after so many scans', maxScansHint: 'Scans of people count, from when the link has this limit.', countedScans: '{n} counted so far.',
  active: 'Active', scheduled: 'Scheduled', ended: 'Ended', paused: 'Paused',
  look: 'Look on screens', color: 'Colour', background: 'Background', shape: 'Shape of the modules', square: 'Squares', rounded: 'Rounded', dots: 'Dots',
  unread: 'A code that looks so could not be read: choose a darker colour on a lighter background, or another shape.'
} as const

export const times = await block(en, { de: async () => (await import('./times.de')).de })

// Words of the panel that tries where a link leads.
import { block } from '../lib/i18n.svelte'

export const en = {
  tryIt: 'Try it', lead: 'Where a scan would lead, and why. Nothing is counted. What you leave empty is not known of the scan.',
  country: 'Country', countryHint: 'Two letters, such as DE', language: 'Language', languageHint: 'Such as de or en-GB', device: 'Device', anyDevice: 'Not known',
  iphone: 'iPhone', android: 'Android phone', ipad: 'iPad', windows: 'Windows computer', mac: 'Mac', robot: 'Robot', phone: 'Phone', tablet: 'Tablet', desktop: 'Computer',
  more: 'More of the scan', region: 'Region', regionHint: 'In English, such as Bavaria', query: 'Query of the link', queryHint: 'Such as ref=poster', referer: 'Page it comes from', refererHint: 'Such as https://example.com/', address: 'Address', addressHint: 'Such as 192.0.2.7',
  percentage: 'Place of the visitor (%)', percentageHint: '0 to 99.99', place: 'place {percentage} of 100', time: 'Time', show: 'Show', asking: 'Asking …',
  leadsTo: 'It leads ({status}) to', noWhere: 'It leads nowhere: whoever scans it gets a page ({status}).',
  byRule: 'The rule {rule} decides, because of {conditions}.', byHiddenRule: 'The rule {rule} decides.', byTarget: 'This is its own target: no rule holds.', byEnded: 'It is closed ({why}), and leads to its page for that.', byClosed: 'It is closed ({why}).', byCopy: 'The item may be a copy, for which a page is shown.', byTakeDown: 'It was taken down: {reason}',
  ofAccount: 'no. {place} of the account', ofApplication: 'no. {place} of the application {id}', before: 'Rules that were tried before', missed: 'not met: {conditions}',
  readAs: 'Read as', hourUtc: 'hour {hour} of the day in UTC'
} as const

export const tryit = await block(en, { de: async () => (await import('./tryit.de')).de })

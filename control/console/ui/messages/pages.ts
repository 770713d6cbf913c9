// Words of visitors' pages.
import { block, type PlainOf } from '../lib/i18n.svelte'

export const en = {
  title: 'Visitors’ pages', lead: 'Whoever scans a code that leads nowhere sees a short page. An edge has a change within a second.',
  ofAll: 'For all short domains that have none of their own.', ofOne: 'For {domain} alone, in the place of those for all.', mayNot: 'Your role does not show visitors’ pages.',
  look: 'Look', name: 'Name above the text', logo: 'Logo', dropLogo: 'Drop a PNG or an SVG here, or choose one', logoHint: 'PNG: 512 × 512 pixels and 64 KiB; SVG: 32 KiB, shapes only.', noLogo: 'This is neither a PNG nor an SVG, or it is larger than 64 KiB.', removeLogo: 'Remove the logo',
  ownColors: 'Own colours', background: 'Background', text: 'Text', accent: 'Button', contrastOf: '{what} on the background: contrast {ratio}', tooLow: 'too low: at least 4.5 is needed',
  linkUrl: 'Button leads to', linkHint: 'https, and a host to which your links may lead.', linkLabel: 'Text of the button', copies: 'Items that may be a copy', copiesNone: 'lead on like others', copiesConfirmed: 'get a page when it is confirmed', copiesSuspected: 'get a page when it is suspected', reports: 'That page lets its reader write to you', reportsHint: 'Anybody who scans the code can. What they write is with the case of the item.', photos: 'They may send a photo', photosHint: 'At most 5 MiB, which counts for your storage. Only the picture is kept, without the place and the time.',
  texts: 'Texts', language: 'Language', addLanguage: 'Another language, such as pt-BR', add: 'Add', kind: 'Page', heading: 'Heading', textsHint: 'Empty: the words of Waymark in this language.', oneEmpty: 'A page needs both a heading and a text.',
  unknown: 'Code is not known', ended: 'Link has ended', suspended: 'Link is paused', copy: 'May be a copy', root: 'Domain without a code',
  preview: 'Preview', light: 'Light: {kind}', dark: 'Dark: {kind}', own: 'own texts',
  conflict: 'Somebody else changed these pages meanwhile.', changedBy: 'Changed {when} by {who}.', mine: 'Yours', theirs: 'Theirs', none: 'none'
} as const

export const pages = await block(en, { de: async () => (await import('./pages.de')).de })
/** Keys of messages without a value in them, for tables. */
export type PageKey = PlainOf<typeof en>

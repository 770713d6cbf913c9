// Words of GS1 Digital Links. They come with their screens.

import { block } from '../lib/i18n.svelte'

const en = {
  title: 'Digital Links', product: 'Product', lot: 'Lot {value}', variant: 'Variant {value}', tpx: 'Extension {value}', type: 'Type', name: 'Title', languages: 'Languages', byDefault: 'default',
  language: 'Language of the phone', anyLanguage: 'any', serial: 'Serial', scanLeads: 'A scan leads to', formerGtins: 'Former GTINs', serials: 'Serials',
  none: 'lead where the product does', template: 'lead where the product does, with the serial in the target', overrides: 'lead where their item does, if it has links', known: 'lead where their item does; others were never issued'
} as const

export const digital = await block(en, { de: async () => (await import('./digital.de')).de })
export type DigitalWords = typeof en

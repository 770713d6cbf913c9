// Words of GS1 Digital Links. They come with their screens.

import { block } from '../lib/i18n.svelte'

const en = {
  title: 'Digital Links', product: 'Product', lot: 'Lot {value}', variant: 'Variant {value}', tpx: 'Extension {value}', type: 'Type', name: 'Title', languages: 'Languages', byDefault: 'default',
  language: 'Language of the phone', anyLanguage: 'any', serial: 'Serial', scanLeads: 'A scan leads to', formerGtins: 'Former GTINs', serials: 'Serials',
  none: 'lead where the product does', template: 'lead where the product does, with the serial in the target', overrides: 'lead where their item does, if it has links', known: 'lead where their item does; others were never issued',
  edit: 'Change links', notYet: 'Scans of its GTIN lead nowhere yet.', noDomain: 'No short domain resolves Digital Links: that is a setting of a domain.', languagesHint: 'Tags such as de or pt-BR, with commas between.', aliasesHint: 'With commas between. Codes with them lead here, too.',
  targetHint: 'With {marks} behind the host.', leadsHere: 'A scan leads here', addLink: 'Add a link', removeLink: 'Remove {title}', addLevel: 'Add a lot or variant', removeLevel: 'Remove {level}', newLevel: 'New level', lotField: 'Lot (10)', variantField: 'Variant (22)', tpxField: 'Extension (235)', description: 'Name',
  check: 'Check links', checking: 'Checking …', pageIsThere: 'there', answers: 'answers {status}', leftOut: '{n} links were not checked.', page: 'Page', leadsOn: 'leads on to {url}',
  scanOf: 'Scan of', context: 'Context', noWish: 'none', askedType: 'Type that is asked for', showLead: 'Show where it leads', neverIssued: 'This serial was never issued.',
  whyDefault: 'This is the default link.', whyType: 'This is the only link of this type.', whyAccept: 'The media type decides.', whyLanguage: 'The language decides.', whyContext: 'The context decides.', whySeveral: 'Several links fit. Whoever scans it chooses.', whyNoLink: 'There is no link of this type.',
  link: 'Link {n} of {level}', conflict: 'Somebody else changed these links meanwhile. What you typed is still here; save again to replace theirs.'
} as const

export const digital = await block(en, { de: async () => (await import('./digital.de')).de })
export type DigitalWords = typeof en

// Words of how much an account keeps of people. They come with the settings.
import { block } from '../lib/i18n.svelte'

export const en = {
  title: 'Personal data', kept: 'Kept of whoever scans', full: 'Everything', truncated: 'Network, major versions, about a kilometre', none: 'Nothing of the person',
  days: 'Cut what is left after days', never: 'never', saved: 'Saved',
  hint: 'The first holds for what comes from now on. After so many days addresses, user agents and exact points go out of scans and other actions, for good; country, city, counts and statistics stay.'
} as const

export const privacy = await block(en, { de: async () => (await import('./privacy.de')).de })

// Words of how much an account keeps of people, of erasures and of exported actions. They come with these screens.
import { block } from '../lib/i18n.svelte'

export const en = {
  title: 'Personal data', kept: 'Kept of whoever scans', full: 'Everything', truncated: 'Network, major versions, about a kilometre', none: 'Nothing of the person',
  days: 'Cut what is left after days', never: 'never', saved: 'Saved', scanDays: 'Remove whole scans after days', elsewhere: 'How much is kept of people is set under “Privacy”.', mayNot: 'Your role sees nothing of this.', daysOf: '{days} days',
  hint: 'The first holds for what comes from now on. After so many days addresses, user agents and exact points go out of scans and other actions, for good; country, city, counts and statistics stay.',
  scanHint: 'Scans by edges are removed as a whole when they are that old; other actions and the counts of statistics stay.',
  // Erasures
  erasures: 'Erasures', erasure: 'Erasure', erasureOf: 'Erasure of {what}', lead: 'An erasure takes what is stored of a person out of actions and scans, in the background. Its receipt stays.',
  whose: 'Whose data', user: 'A user of an application', thng: 'Everybody who scanned an item', network: 'A network', age: 'What was old enough', id: 'Id', idHint: '24 characters. For a network and a time use the API.',
  erase: 'Erase', eraseUser: 'Erase for good what is stored of the user {id}', eraseThng: 'Erase for good what is stored of everybody who scanned {id}', idNeeded: 'Give an id of 24 characters.',
  noErasures: 'No erasures yet', noErasuresHint: 'When a user of an application is deleted, its data is erased without being asked for.', state: 'State', anyState: 'Every state', subject: 'Of', asked: 'Asked for', begun: 'Begun', ended: 'Ended', askedBy: 'Asked by', changedRows: 'Rows changed', users: '{count} users',
  ENQUEUED: 'Waiting', EXECUTING: 'Running', COMPLETED: 'Done', rows: 'What was changed', of: 'Whose data', from: 'From', to: 'Until before', receipt: 'Receipt', print: 'Print this page', profilesFailed: '{count} profiles could not be made again; they are tried each minute.', mayNotErasures: 'Your role does not show erasures: owners and admins do.',
  actions: 'Actions', scans: 'Scans by edges', webhookMessages: 'Messages of webhooks', reactionTasks: 'Tasks of reactions', unknownScans: 'Counts of unknown codes', profiles: 'Profiles of items', standings: 'Verdicts that forgot a place',
  // Export
  export: 'Export actions', exportLead: 'All actions of a type, oldest first. A Parquet file is for a data warehouse; lines of JSON are for everything else. Both may be large, and may hold personal data.',
  type: 'Type', allTypes: 'All types', fromDay: 'From', toDay: 'Until', parquet: 'Parquet', lines: 'Lines of JSON', exporting: 'Being fetched …'
} as const

export const privacy = await block(en, { de: async () => (await import('./privacy.de')).de })

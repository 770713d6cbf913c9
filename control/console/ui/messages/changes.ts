// Words of changes of many links, and of scans by rule.
import { block, type PlainOf } from '../lib/i18n.svelte'

export const en = {
  title: 'Changes of many links', lead: 'Each can be undone for 30 days after it has ended.', mayNot: 'Your role does not show links.', mayNotChange: 'Your role changes no links.',
  newChange: 'Change many links', changeThese: 'Change these links', changeAll: 'Change all links', change: 'Change', undoOf: 'Undo', none: 'No changes yet', noneHint: 'Filter the list of links, then change what it finds.',
  which: 'Which links', allHint: 'A link must meet all that is given. All empty: every link.', q: 'Words of title, tag, target or short id', filter: 'Filter', filterHint: 'Such as tags=summer&createdAt>1767225600000.', of: 'Id of a product or item', domain: 'Short domain',
  what: 'What is changed', whatHint: 'What is empty stays as it is.', target: 'New target', linkTitle: 'New title', add: 'Tags to add', remove: 'Tags to remove', tagsHint: 'Separated by commas.',
  status: 'State', stays: 'stays', active: 'active', paused: 'paused', code: 'Status code', from: 'Leads there from', until: 'Leads there until', noFrom: 'Remove the begin', noUntil: 'Remove the end', ended: 'Target before, after and while paused', noEnded: 'Remove that target', query: 'Query is passed on', yes: 'yes', no: 'no', localTime: 'In the time zone of this browser.',
  count: 'Count and show', found: 'Links: {count}', sample: 'The first {count}, before and after', noChange: 'nothing differs', confined: 'Links of your projects only.',
  run: 'Change {count} links', really: 'Change {count} links now', state: 'State', started: 'Asked for', links: 'Links', progress: 'Progress', counts: '{done} of {of}', anyState: 'Every state',
  awaitingApproval: 'Waits for approval', waiting: 'Waiting', running: 'Running', complete: 'Done', failed: 'Failed', cancelled: 'Cancelled',
  changed: 'Changed', unchanged: 'Nothing differed', conflicts: 'Left as they are', by: 'Asked for by', approvedBy: 'Approved by', undoUntil: 'Can be undone until', noConflicts: 'None was left as it is.', why: 'Why', asked: 'What was asked for', undoes: 'It undoes', theChange: 'a change',
  approve: 'Approve', approveReally: 'Change {count} links', approveOther: 'Another operator must approve it.', cancel: 'Stop', cancelReally: 'Stop; what is changed stays', undo: 'Undo', undoReally: 'Give {count} links back what they had', strict: 'Only if no link was changed since',
  rules: 'Scans by rule', countRules: 'Count, 7 days', rulesHint: 'By the rule that decided where a scan was led.', rule: 'Rule', scans: 'Scans', robots: 'Robots', ofApplication: 'of application {id}', numbered: 'Rule {at}', withoutRule: 'No rule: the link’s own target, or closed'
} as const

export const changes = await block(en, { de: async () => (await import('./changes.de')).de })
/** Keys of messages without a value in them, for tables. */
export type ChangeKey = PlainOf<typeof en>

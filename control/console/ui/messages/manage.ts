// Messages of cases, jobs, imports, webhooks and reactions. They come with these screens.

import { block, type PlainOf } from '../lib/i18n.svelte'

const en = {
  notNow: 'Not now', state: 'State', remove: 'Delete', save: 'Save', edit: 'Change',
  // Webhooks
  webhooksLead: 'A webhook sends events to a URL of yours. A reaction does something about each event here, without a server of yours.',
  mayNotWebhooks: 'Your role does not show webhooks: they see all that happens, with exact places.', mayNotReactions: 'Your role does not show reactions.',
  noWebhooks: 'No webhooks yet', noWebhooksHint: 'Waymark then calls a URL of yours at each event that you choose, and signs what it sends.',
  newWebhook: 'New webhook', newReaction: 'New reaction', webhook: 'Webhook', reactions: 'Reactions', sendsTo: 'Sends to', events: 'Events', allEvents: 'all',
  active: 'Active', paused: 'Paused', disabled: 'Off', failing: 'Failing', failingSince: 'An event of {at} was tried {count} times.', waits: 'More events may wait behind it.',
  pausedHint: 'Nothing is sent; what happens is kept for three days.', disabledHint: 'Nothing is sent and nothing is kept.',
  pause: 'Pause', resume: 'Resume', turnOn: 'Turn on', turnOff: 'Turn off', turnOffReally: 'Turn “{name}” off and drop what waits',
  deleteWebhook: 'Delete “{name}” and what it was still to send', deleteReaction: 'Delete “{name}”',
  webhookName: 'Name', url: 'URL', urlHint: 'https, and a public address.', types: 'Types of events', typesHint: 'Separated by commas, such as action.implicitScans, properties, redirection, job. Empty: all.',
  match: 'Only events that match', matchHint: 'A filter, such as context.countryCode=DE. Empty: all.', ordered: 'One after the other', orderedHint: 'each event waits until the one before it was taken',
  createWebhook: 'Create the webhook', createReaction: 'Create the reaction', dropped: 'Lost in the queue', droppedCount: '{count} lost',
  ping: 'Send a test event', pinged: 'The receiver took it: {status}, after {ms} ms.', notPinged: 'The receiver did not take it: {why}.', status: 'status {status}',
  secrets: 'Secrets', secretsHint: 'A receiver checks by them that a request comes from Waymark.', showSecrets: 'Show the secrets', signsUntil: 'signs until {at}', signsNewest: 'newest',
  newSecret: 'New secret', newSecretReally: 'Add a secret; the others sign for another day',
  deliveries: 'Deliveries', mayNotDeliveries: 'Your role does not show deliveries: they hold personal data.', noDeliveries: 'Nothing was sent in the last three days.',
  anyState: 'Every state', pending: 'Waiting', delivered: 'Delivered', dead: 'Given up', event: 'Event', attempts: 'Attempts', answer: 'Answer', noAnswerYet: 'not tried yet', nextTry: 'next attempt {at}',
  details: 'Details', hide: 'Hide', payload: 'What is sent', answerText: 'What the receiver answered', sendAgain: 'Send again', sentAgain: 'It is sent again.', lastTried: 'Last attempt', queued: 'Queued',
  sendDead: 'Send all given-up events again', sendDeadReally: 'Send every given-up event of three days to “{name}” again', sentDead: '{count} events are sent again.',
  // Reactions
  noReactions: 'No reactions yet', noReactionsHint: 'A reaction sets a property, creates an action or calls a webhook at each event that you choose.',
  does: 'Does', sets: 'Sets {key} to {value}', setsFrom: 'Sets {key} to {from} of the event', creates: 'Creates {type}', calls: 'Calls {webhook}',
  outcome: 'Done · failed', lastFailure: 'Failed {at}: {reason}',
  effect: 'What it does', effectProperty: 'Set a property', effectAction: 'Create an action', effectWebhook: 'Call a webhook', propertyKey: 'Property', valueFrom: 'Take it from this member of the event',
  fixedValue: 'Or a fixed value', eitherValue: 'Name a member of the event or a fixed value.', actionType: 'Type of action', actionTypeHint: 'Of your own or built in, such as scans.', tagsCommas: 'Tags, separated by commas',
  noReactionWebhooks: 'There is no webhook whose only type is “reaction”. Make one first.',
  // Jobs
  jobsLead: 'A job creates an action on each item of a file, in the background. An import creates items, products or links while this page is open.',
  mayNotJobs: 'Your role does not show jobs.', noJobs: 'No jobs yet', noJobsHint: 'A job creates one action on each of many items.', startImport: 'Import a file', started: 'Started', ended: 'Ended', progress: 'Progress', failed: 'Failed',
  job: 'Job', jobOf: 'Job of {at}', counts: '{done} of {of}', countsOpen: '{done}; the file is being read',
  ENQUEUED: 'Waiting', STARTING: 'Starting', EXECUTING: 'Running', CANCELLING: 'Being cancelled', COMPLETED: 'Done', COMPLETED_WITH_FAILURES: 'Done, with failures', CANCELLED: 'Cancelled', FAILED: 'Failed',
  cancelJob: 'Cancel the job', cancelReally: 'Stop after {done} of {of}; what it created stays', runs: 'How it went', asked: 'What it was asked for', template: 'Action', namedBy: 'Items are named by', fromFile: 'a file', fromList: '{count} ids',
  failures: 'Failed operations', noFailures: 'No operation failed.', why: 'Why', itemNamed: 'Item', failuresCsv: 'All as CSV', failuresCut: 'The first {count} are in the file.',
  PLATFORM_IDS: 'Id', EXTERNAL_IDS: 'Identifier', SHORT_IDS: 'Short id',
  // Imports
  importFile: 'Import', importLead: 'Choose what to create, then a CSV file whose first line names its columns.', mayNotImport: 'Your role creates nothing. Ask whoever manages your account for the role “editor”.',
  whatToCreate: 'What to create', kindItems: 'Items', kindProducts: 'Products', kindLinks: 'Links', kindActions: 'An action on each item',
  hintItems: 'Each line is an item; with a target it gets its link, too.', hintProducts: 'Each line is a product.', hintLinks: 'Each line is a link to a product or item that is there.', hintActions: 'Each line names an item. The server does the work, and this page may be closed.',
  dropHere: 'Drop a CSV file here, or choose one', chooseFile: 'CSV file', otherFile: 'Another file', fileSays: '{name}: {rows} lines, {columns} columns', fileEmpty: 'The file has no line below its first one.', fileLarge: 'The file is larger than {mb} MB. “waymark import” reads files of any size.',
  fileNoText: 'This is no CSV file: it holds bytes that are no text.', fileUneven: '{count} lines have more or fewer columns than the first one.',
  firstLines: 'First lines', columns: 'Columns', column: 'Column', becomes: 'Becomes', ignored: 'Ignored', keyOf: 'Key', example: 'Example',
  memberName: 'Name', memberProduct: 'Product (id or identifier)', memberDescription: 'Description', memberTags: 'Tags (separated by ; or |)', memberBrand: 'Brand', memberUrl: 'URL', memberIdentifier: 'Identifier', memberField: 'Custom field', memberProperty: 'Property',
  memberTarget: 'Target', memberLinkTarget: 'Target of its link', memberOf: 'Product or item (id)', memberShortId: 'Short id', memberDomain: 'Short domain', memberItem: 'Item',
  needs: 'Choose a column for: {members}.', twice: 'Two columns become: {members}.', keyMissing: 'A column needs a key.',
  check: 'Check the file', checking: 'Checking line {line} …', checkHint: 'Nothing is created. Names, lengths and products are looked at; whether something exists already is found out by the import.',
  checkedGood: '{good} of {rows} lines can be imported.', checkedBad: '{count} lines have faults and will be left out:', line: 'Line {line}', more: 'and {count} more',
  faultMissing: '{member} is empty', faultLong: '{member} is longer than {most} characters', faultProduct: 'no product {value}', faultSeveral: 'several products are {value}', faultUrl: '{value} is no http or https URL', faultId: '{value} is no id',
  start_items: 'Create {count} items', start_products: 'Create {count} products', start_links: 'Create {count} links', start_actions: 'Create {count} actions',
  running: 'Importing {name}', runningHint: 'Keep this page open; you may look at other screens of it. Repeated within a day, the same file creates nothing twice.', stop: 'Stop', stopReally: 'Stop after {done} of {of} lines; what was created stays', goOn: 'Go on',
  stopped: 'Stopped', finished: 'The import is finished', waitsFor: 'Waiting: {why}', created: 'created', already: 'there already', rejected: 'rejected', leftOut: 'left out by the check',
  rejectsCsv: 'Rejected lines', resultsCsv: 'Results', anotherImport: 'Another import', importRuns: 'An import is under way.', importOver: 'An import is finished.', showIt: 'Show it',
  rejectsHint: 'Put the rejected lines right in their own file and import only that one: what was created stays.', forgetReally: 'Leave it at {done} of {of} lines; what was created stays',
  itemButNoLink: 'the item {id} was created, its link was not', idsBy: 'The column holds', key: 'Key of the identifier', keyHint: 'Such as gs1:21. Without one each line names it, as key:value.', uploading: 'The file is being sent …',
  // Cases
  casesLead: 'Items that an assessment suspects. A decision changes the verdict of the item at once.', mayNotCases: 'Your role does not show cases.', noCases: 'No cases', noCasesHint: 'A case opens when an assessment of a scan suspects a copy or a diversion.',
  case: 'Case', everyState: 'Every state', everyKind: 'Copies and diverted', kindOf: 'Kind', suspicion: 'Suspicion', points: 'Points', signs: 'Signs', countriesOutside: 'Countries outside', opened: 'Opened',
  level: 'Level', LEVEL_none: 'None', LEVEL_suspected: 'Suspected', LEVEL_duplicate: 'Duplicate', evidenceOf: 'What speaks for it', reportsOf: 'Reports of finders', reportPhoto: 'Photo', reportsHint: 'Strangers wrote this. Nobody checked it, nor the addresses.', byScan: 'By the scan of {at}', decide: 'Decide', decided: 'Decided', mayNotDecide: 'Your role decides no cases. “inspector” and “editor” do.',
  reason: 'Reason', reasonHint: 'Who reads the case sees it. Results of assessments do not name it.', isDisplay: 'It is a display piece', displayHint: 'tags the item “display”: its scans count no more', confirm: 'Confirm', dismiss: 'Dismiss', reopen: 'Open again',
  confirmReally: 'Confirm “{kind}” of {item}', dismissReally: 'Dismiss “{kind}” of {item}', reopenReally: 'Open “{kind}” of {item} again', reasonNeeded: 'Say why.', caseConflict: 'Somebody else decided on this case meanwhile. What you typed is still here; look at it again.', historyOf: 'Changes', byScanOf: 'a scan', wasOpen: 'Opened', wasConfirmed: 'Confirmed', wasDismissed: 'Dismissed'
} as const

export type Block = Record<keyof typeof en, string>
/** The message of a key of this block, with its values in their places. */
export const m = await block(en, { de: async () => (await import('./manage.de')).de })
/** Keys of messages without a value in them, for tables. */
export type ManageKey = PlainOf<typeof en>

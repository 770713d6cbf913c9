// Messages of print orders. They come with their screens.

import { block, type PlainOf } from '../lib/i18n.svelte'

const en = {
  lead: 'An order makes one file of many codes. Each code is read back from what was drawn.',
  mayNot: 'Your role does not show print orders.', mayNotOrder: 'Your role orders no codes. “printer”, “commissioner” and “editor” do.',
  none: 'No print orders yet', noneHint: 'An order prints the codes of links that are there, or makes items with serials of their own.',
  newOrder: 'New print order', order: 'Print order', orderOf: 'Print order of {at}', ordered: 'Ordered', ended: 'Ended', state: 'State', anyState: 'Every state', codes: 'Codes', format: 'Format', progress: 'Progress',
  waiting: 'Waiting', making: 'Finding the codes', rendering: 'Drawing', publishing: 'Waiting for edges', complete: 'Complete', failed: 'Failed', cancelled: 'Cancelled',
  found: 'Found or made', drawn: 'Drawn and read back', counts: '{done} of {of}', orderId: 'Id',
  // The form
  stepCodes: 'Codes', stepLabel: 'Label', stepText: 'Text and names', stepCheck: 'Check and order', stepOf: 'Step {at} of {of}: {name}', next: 'Next', back: 'Back', place: 'Order', placing: 'Ordering …',
  source: 'Which codes', sourceSerials: 'New items of a product', sourceFilter: 'Links that a filter finds', sourceList: 'A list of short ids',
  hintSerials: 'Makes an item with a serial and a link for each code.', hintFilter: 'All links that the filter finds when the order is accepted, oldest first.', hintList: 'These, in this order; at most 5,000.',
  product: 'Product', productId: 'Id of the product', chooseProduct: 'Choose a product', nameBegins: 'Only names that begin with', count: 'How many', target: 'Where the links lead',
  form: 'Serials', numbered: 'Numbered', random: 'Random', prefix: 'Before each serial', start: 'First number', startHint: 'Empty: the one behind those of the orders before.', digits: 'Digits', digitsHint: 'Filled with zeros. Empty: as many as the number has.',
  length: 'Random characters', lengthHint: '13 to 20. Empty: 16, which are 79 bits.', tags: 'Tags of the items, separated by commas', domain: 'Short domain', firstDomain: 'The first one: {domain}',
  filter: 'Filter of links', filterHint: 'Such as product=ID&tags=summer. Fields: title, tags, product, thng, platformId, shortId, shortDomain, createdAt and others of the guide.',
  list: 'Short ids', listHint: 'One on each line, or separated by commas or blanks.', listed: 'Short ids: {count}',
  png: 'PNG, a file each', svg: 'SVG, a file each', pdf: 'PDF, a file each', eps: 'EPS, a file each', tiff: 'TIFF, a file each', pages: 'One PDF, a page for each code', sheets: 'One PDF, sheets of labels', zpl: 'One file for label printers (ZPL)',
  size: 'Label', sizeSheets: 'Sheet of labels', noSize: 'As large as the code', a4: 'A4', letter: 'Letter', roll: 'Rolls', sizeHint: 'Width and height in millimetres. The API takes measures of your own, too.',
  startLabel: 'First free label', startLabelHint: 'Of the first sheet, counted by rows from the upper left corner.', cutMarks: 'Cut marks', dpi: 'Dots per inch', dpiHint: 'Empty: {dpi}.',
  edge: 'Edge of the code in mm', edgeHint: 'Empty: as large as the label allows.', ecl: 'Error correction', eclHint: 'Q, unless something asks for another level.', allowSmall: 'Modules below 0.25 mm are allowed', allowSmallHint: 'phones may not read such codes',
  hri: 'Text below the code', hriNone: 'None', hriShortId: 'Short id', hriSerial: 'Serial', hriGs1: 'GTIN and serial (GS1)', naming: 'Names of the files', namingHint: 'With {marks}. Empty: {standard}.', name: 'Name of the order', nameHint: 'For people; may be empty.',
  waits: 'When it is released', waitReport: 'When all edges have the links, or after a minute', waitRequire: 'Only when all edges have the links', waitNone: 'At once',
  checkLead: 'Look at it once more. Items and links that an order makes stay, also if it is cancelled.', makes: 'Makes {count} items with links', faults: 'Something is to be put right: {count}.', notSaid: 'not said',
  // An order
  message: 'Why it failed', files: 'Files', noFiles: 'The files are here when the order is complete.', filesGone: 'The files were removed at {at}.', filesUntil: 'Kept until {at}.', file: 'File', bytes: 'Size', type: 'Type', downloadOf: 'Download {name}',
  receipt: 'Receipt', receiptLead: 'What was drawn, and read back from what was drawn.', decoded: 'Read back', sampled: 'Of these, at known places', pagesMade: 'Pages, labels or files', module: 'Width of a module', moduleFromTo: '{from} to {to} mm', moduleOf: '{mm} mm', version: 'Version of the symbols', versions: '{from} to {to}',
  serials: 'Serials', fromTo: '{first} to {last}', bits: 'Randomness of a serial', bitsOf: '{bits} bits', print: 'Print this page',
  edges: 'Edges', edgesHad: '{acked} of {members} had the links', lagging: 'Without the links', unreachable: 'Not heard of', reprintOf: 'Codes again of order', asked: 'What was ordered', text: 'Text',
  cancel: 'Cancel the order', cancelReally: 'End it after {done} of {of} codes; what it made stays', remove: 'Delete the order', removeReally: 'Delete it with its files; items and links stay', cancelLate: 'It had ended already.'
} as const

export type PrintBlock = Record<keyof typeof en, string>
/** The message of a key of this block, with its values in their places. */
export const m = await block(en, { de: async () => (await import('./printing.de')).de })
/** Keys of messages without a value in them, for tables. */
export type PrintKey = PlainOf<typeof en>

// Print orders: their states, what an order is made of, and which field a fault of the API is about.

import type { Schemas } from '../api/client'
import type { PrintKey } from '../messages/printing'
import { can } from './session.svelte'
import { words } from './webhooks'

export type Order = Schemas['PrintOrderDocument']

export const STATES: Record<string, [PrintKey, string]> = {
  waiting: ['waiting', ''], making: ['making', 'warn'], rendering: ['rendering', 'warn'], publishing: ['publishing', 'warn'],
  complete: ['complete', 'good'], failed: ['failed', 'bad'], cancelled: ['cancelled', '']
}
const OVER = ['complete', 'failed', 'cancelled']
/** Whether nothing comes any more. A state that is new here is taken for one that stays. */
export const isOver = (order: { status: string }): boolean => OVER.includes(order.status) || !(order.status in STATES)

export const FORMATS = { 'pdf-sheets': 'sheets', 'pdf-pages': 'pages', zpl: 'zpl', svg: 'svg', png: 'png', pdf: 'pdf', eps: 'eps', tiff: 'tiff' } as const satisfies Record<string, PrintKey>
export type Format = keyof typeof FORMATS
export const formatKey = (format: string | null | undefined): PrintKey | undefined => FORMATS[format as Format]
/** Whether each code is a file of its own. */
export const isZip = (format: Format): boolean => ['png', 'svg', 'pdf', 'eps', 'tiff'].includes(format)
/** Dots per inch of what is made of dots, where an order does not say. */
export const standardDpi = (format: Format): number | undefined => ({ png: 300, tiff: 300, zpl: 203 } as Partial<Record<Format, number>>)[format]

const named = (paper: string, labels: string) => labels.split(' ').map((label) => `${paper}-${label}`)
/** The sheets and rolls that the API knows by name; a test compares them. */
export const SIZES = {
  a4: named('a4', '199.6x289.1 199.6x143.5 210x148.5 105x148.5 99.1x139 99.1x93.1 105x74 99.1x67.7 99.1x57 99.1x42.3 63.5x72 99.1x38.1 99.1x33.9 63.5x46.6 63.5x38.1 70x42.3 63.5x33.9 70x37 70x29.7 52.5x29.7 48.5x25.4 45.7x21.2 38.1x21.2 35.6x16.9 25.4x10'),
  letter: named('letter', '215.9x139.7 101.6x84.7 101.6x50.8 101.6x33.9 101.6x25.4 66.7x25.4 44.5x12.7'),
  roll: named('roll', '25x10 25x25 30x20 38x25 40x30 50x25 50x30 57x32 57x51 60x40 70x32 76x51 100x50 100x70 100x100 100x150 25.4x25.4 50.8x25.4 76.2x50.8 101.6x152.4')
}
/** Sheets have several labels, so they go with one format; the others take a single label. */
export const sizesOf = (format: Format): (keyof typeof SIZES)[] => format === 'pdf-sheets' ? ['a4', 'letter'] : ['roll']

export const HRI = { none: 'hriNone', shortId: 'hriShortId', serial: 'hriSerial', gs1: 'hriGs1' } as const satisfies Record<string, PrintKey>
export const WAITS = { report: 'waitReport', require: 'waitRequire', none: 'waitNone' } as const satisfies Record<string, PrintKey>

export type Source = 'serials' | 'filter' | 'list'
export const SOURCES: Record<Source, [PrintKey, PrintKey]> = { serials: ['sourceSerials', 'hintSerials'], filter: ['sourceFilter', 'hintFilter'], list: ['sourceList', 'hintList'] }
/** What the operator may print: serials make items and links. */
export const sourcesOffered = (): Source[] => !can('printOrders', 'create') ? [] : [
  ...(can('thngs', 'create') && can('redirections', 'create') ? ['serials' as const] : []),
  ...(can('redirections', 'list') ? ['filter' as const, 'list' as const] : [])
]

/** What is typed into the form. Numbers are `null` while their field is empty. */
export interface Draft {
  source: Source, product: string, count: number | null, target: string, form: 'numbered' | 'random', prefix: string, start: number | null, digits: number | null, length: number | null, tags: string
  domain: string, filter: string, list: string
  format: Format, size: string, startLabel: number | null, cutMarks: boolean, dpi: number | null, edge: number | null, ecl: 'L' | 'M' | 'Q' | 'H', allowSmall: boolean
  hri: keyof typeof HRI, naming: string, name: string, waits: keyof typeof WAITS
}
export const emptyDraft = (): Draft => ({
  source: 'serials', product: '', count: null, target: '', form: 'random', prefix: '', start: null, digits: null, length: null, tags: '', domain: '', filter: '', list: '',
  format: 'pdf-sheets', size: 'a4-63.5x38.1', startLabel: null, cutMarks: false, dpi: null, edge: null, ecl: 'Q', allowSmall: false, hri: 'none', naming: '', name: '', waits: 'report'
})

export const listed = (text: string): string[] => text.split(/[\s,;]+/).filter(Boolean)

function sourceOf (draft: Draft): object {
  const domain = draft.domain && { shortDomain: draft.domain }
  if (draft.source === 'filter') return { filter: draft.filter.trim() }
  if (draft.source === 'list') return { list: { shortIds: listed(draft.list), ...domain } }
  const form = draft.form === 'numbered'
    ? { ...(draft.start !== null && { start: draft.start }), ...(draft.digits !== null && { digits: draft.digits }) }
    : draft.length !== null && { length: draft.length }
  const tags = words(draft.tags)
  return { serials: {
    // What is empty is left out: the API then says that it is required.
    ...(draft.product && { product: draft.product }), ...(draft.count !== null && { count: draft.count }), form: draft.form, ...form,
    ...(draft.prefix && { prefix: draft.prefix }), ...(draft.target.trim() && { defaultRedirectUrl: draft.target.trim() }), ...domain, ...(tags.length > 0 && { tags })
  } }
}

/** The body of an order. Members that its format does not take are left out, whatever was typed for another format. */
export function bodyOf (draft: Draft): object {
  const { format } = draft
  const isSheets = format === 'pdf-sheets'
  const size = draft.size && sizesOf(format).some((paper) => SIZES[paper].includes(draft.size)) ? draft.size : ''
  const layout = { ...(size && { size }), ...(isSheets && draft.startLabel !== null && { start: draft.startLabel }), ...(isSheets && draft.cutMarks && { cutMarks: true }) }
  const code = { ...(draft.ecl !== 'Q' && { ecl: draft.ecl }), ...(draft.edge !== null && { sizeMm: draft.edge }) }
  return {
    ...(draft.name.trim() && { name: draft.name.trim() }), source: sourceOf(draft), format,
    ...(Object.keys(layout).length > 0 && { layout }), ...(Object.keys(code).length > 0 && { code }),
    ...(isZip(format) && draft.naming.trim() && { naming: draft.naming.trim() }), ...(draft.hri !== 'none' && { hri: { text: draft.hri } }),
    ...(standardDpi(format) !== undefined && draft.dpi !== null && { dpi: draft.dpi }), ...(draft.allowSmall && { allowSmall: true }), waitForEdges: draft.waits
  }
}

/** The field of each member that a fault may name, and its step. The longest name that fits counts. */
const FIELDS: [member: string, field: keyof Draft, step: number][] = [
  ['source.serials.product', 'product', 0], ['source.serials.count', 'count', 0], ['source.serials.defaultRedirectUrl', 'target', 0], ['source.serials.form', 'form', 0],
  ['source.serials.prefix', 'prefix', 0], ['source.serials.start', 'start', 0], ['source.serials.digits', 'digits', 0], ['source.serials.length', 'length', 0],
  ['source.serials.tags', 'tags', 0], ['source.serials.shortDomain', 'domain', 0], ['source.serials', 'prefix', 0], ['source.filter', 'filter', 0],
  ['source.list.shortDomain', 'domain', 0], ['source.list', 'list', 0], ['source', 'source', 0],
  ['format', 'format', 1], ['layout.start', 'startLabel', 1], ['layout.cutMarks', 'cutMarks', 1], ['layout', 'size', 1], ['dpi', 'dpi', 1], ['code.ecl', 'ecl', 1], ['code', 'edge', 1], ['allowSmall', 'allowSmall', 1],
  ['hri', 'hri', 2], ['naming', 'naming', 2], ['name', 'name', 2], ['waitForEdges', 'waits', 2]
]

export interface Placed { field: keyof Draft, step: number, text: string }
/** The faults of a refusal by their fields, and those that are about none. */
export function placeFaults (errors: string[]): { placed: Placed[], others: string[] } {
  const placed: Placed[] = []
  const others: string[] = []
  for (const text of errors) {
    // Such as `source.list.shortIds[3] is no short id.` or `source.filter: …`.
    const member = text.match(/^[A-Za-z]+(?:\.[A-Za-z]+)*(?=[[ :.]|$)/)?.[0] ?? ''
    const found = FIELDS.filter(([name]) => member === name || member.startsWith(`${name}.`)).sort(([one], [other]) => other.length - one.length)[0]
    if (found) placed.push({ field: found[1], step: found[2], text })
    else others.push(text)
  }
  return { placed, others }
}

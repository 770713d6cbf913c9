// What a file can be made into: the members of the API that a column may become, and the body of each line.

import { api, body, literal } from '../api/client'
import { m, type ManageKey } from '../messages/manage'
import type { Table } from './csv'
import { isId } from './ids'
import { can } from './session.svelte'

export type Kind = 'items' | 'products' | 'links' | 'actions'
export interface Member {
  name: string, label: ManageKey, isNeeded?: boolean, most?: number
  /** One of many under a key of its own, such as an identifier. */
  hasKey?: boolean
  /** Names of columns that are taken for it. */
  known?: string[]
}
/** What a column becomes; an empty member means that it is left out. */
export interface Column { member: string, key: string }

const NAME: Member = { name: 'name', label: 'memberName', isNeeded: true, most: 256, known: ['name', 'title'] }
const DESCRIPTION: Member = { name: 'description', label: 'memberDescription', most: 4096, known: ['description', 'beschreibung'] }
const TAGS: Member = { name: 'tags', label: 'memberTags', known: ['tags', 'tag'] }
const KEYED: Member[] = [
  { name: 'identifiers', label: 'memberIdentifier', hasKey: true, most: 256 },
  { name: 'customFields', label: 'memberField', hasKey: true },
  { name: 'properties', label: 'memberProperty', hasKey: true }
]
const TARGET = ['target', 'url', 'defaultredirecturl', 'ziel']

export const KINDS: Record<Kind, { label: ManageKey, hint: ManageKey, members: Member[], isOffered: () => boolean }> = {
  items: {
    label: 'kindItems', hint: 'hintItems', isOffered: () => can('thngs', 'create'),
    members: [NAME, { name: 'product', label: 'memberProduct', known: ['product', 'gtin', 'produkt'] }, DESCRIPTION, TAGS, ...KEYED,
      { name: 'target', label: 'memberLinkTarget', most: 2048, known: TARGET }]
  },
  products: {
    label: 'kindProducts', hint: 'hintProducts', isOffered: () => can('products', 'create'),
    members: [NAME, { name: 'brand', label: 'memberBrand', most: 256, known: ['brand', 'marke'] }, DESCRIPTION, TAGS, { name: 'url', label: 'memberUrl', most: 2048, known: ['url'] }, ...KEYED]
  },
  links: {
    label: 'kindLinks', hint: 'hintLinks', isOffered: () => can('redirections', 'create'),
    members: [
      { name: 'platformId', label: 'memberOf', isNeeded: true, known: ['platformid', 'evrythngid', 'id', 'thng', 'item', 'product'] },
      { name: 'defaultRedirectUrl', label: 'memberTarget', isNeeded: true, most: 2048, known: TARGET },
      { name: 'shortId', label: 'memberShortId', most: 64, known: ['shortid'] },
      { name: 'shortDomain', label: 'memberDomain', known: ['shortdomain', 'domain'] }
    ]
  },
  actions: {
    label: 'kindActions', hint: 'hintActions', isOffered: () => can('jobs', 'create') && can('files', 'create'),
    members: [{ name: 'item', label: 'memberItem', isNeeded: true, most: 385, known: ['id', 'ids', 'thng', 'thngs', 'item', 'platformid', 'evrythngid', 'identifier', 'externalid', 'shortid'] }]
  }
}

export const kindsOffered = (): Kind[] => (Object.keys(KINDS) as Kind[]).filter((kind) => KINDS[kind].isOffered())

const folded = (name: string) => name.toLowerCase().replace(/[^a-z0-9]/g, '')

/** What the columns of a file probably are; each member at most once. */
export function guess (kind: Kind, header: string[]): Column[] {
  const taken = new Set<string>()
  return header.map((name) => {
    const found = KINDS[kind].members.find((one) => !taken.has(one.name) && one.known?.includes(folded(name)))
    if (found) {
      taken.add(found.name)
      return { member: found.name, key: '' }
    }
    // `gs1:21` names an identifier by itself.
    const isIdentifier = /^[a-z][a-z0-9]*:[\w-]+$/i.test(name) && KINDS[kind].members.some((one) => one.name === 'identifiers')
    return isIdentifier ? { member: 'identifiers', key: name } : { member: '', key: '' }
  })
}

/** What is wrong with a choice of columns as a whole. */
export function faultsOf (kind: Kind, columns: Column[]): string[] {
  const { members } = KINDS[kind]
  const chosen = (name: string) => columns.filter((column) => column.member === name)
  const names = (list: Member[]) => list.map((one) => m(one.label)).join(', ')
  const missing = members.filter((one) => one.isNeeded && chosen(one.name).length === 0)
  const twice = members.filter((one) => one.hasKey
    ? new Set(chosen(one.name).map((column) => column.key.trim())).size < chosen(one.name).length
    : chosen(one.name).length > 1)
  const isKeyMissing = columns.some((column) => members.find((one) => one.name === column.member)?.hasKey && column.key.trim() === '')
  return [missing.length > 0 && m('needs', { members: names(missing) }), twice.length > 0 && m('twice', { members: names(twice) }), isKeyMissing && m('keyMissing')]
    .filter((fault) => fault !== false)
}

export interface Prepared {
  /** Its index among the rows. */
  at: number
  body: Record<string, unknown>
  /** Of an item: where its link leads. */
  target?: string
}
export interface Bad { at: number, faults: string[] }
export interface Checked { good: Prepared[], bad: Bad[] }

/** A number or a truth that is written as one is one; `007` stays a text. */
const asValue = (text: string): unknown =>
  /^-?(0|[1-9]\d{0,14})(\.\d+)?$/.test(text) ? Number(text) : text === 'true' ? true : text === 'false' ? false : text

const isUrl = (text: string): boolean => { try { return ['http:', 'https:'].includes(new URL(text).protocol) } catch { return false } }

function build (kind: Kind, columns: Column[], row: string[], at: number): { prepared: Prepared, faults: string[], product?: string } {
  const { members } = KINDS[kind]
  const made: Record<string, unknown> = {}
  const faults: string[] = []
  let target: string | undefined
  let product: string | undefined
  for (const [index, { member: name, key }] of columns.entries()) {
    const member = members.find((one) => one.name === name)
    const text = (row[index] ?? '').trim()
    if (!member) continue
    if (text === '') {
      if (member.isNeeded) faults.push(m('faultMissing', { member: m(member.label) }))
      continue
    }
    if (member.most && [...text].length > member.most) faults.push(m('faultLong', { member: m(member.label), most: member.most }))
    if (['target', 'defaultRedirectUrl'].includes(name) && !isUrl(text)) faults.push(m('faultUrl', { value: text }))
    if (name === 'platformId' && !isId(text)) faults.push(m('faultId', { value: text }))
    if (name === 'tags') made.tags = text.split(/[;|]/).map((tag) => tag.trim()).filter(Boolean)
    else if (name === 'target') target = text
    else if (name === 'product') product = text
    else if (member.hasKey) made[name] = { ...(made[name] as object | undefined), [key.trim()]: name === 'properties' ? asValue(text) : text }
    else made[name] = text
  }
  return { prepared: { at, body: made, ...(target && { target }) }, faults, ...(product && { product }) }
}

/** The ids of products that a file names by id, as `key:value`, or by a GTIN alone; or why there is none. */
async function findProducts (names: string[], signal: AbortSignal): Promise<Map<string, { id?: string, fault?: string }>> {
  const found = new Map<string, { id?: string, fault?: string }>()
  const ids = names.filter(isId)
  for (let at = 0; at < ids.length; at += 100) {
    const part = ids.slice(at, at + 100)
    const rows = await body(api.GET('/products', { params: { query: { ids: part.join(','), perPage: 100 } }, signal }))
    for (const id of part) found.set(id, rows.some((row) => row.id === id) ? { id } : { fault: m('faultProduct', { value: id }) })
  }
  for (const name of names) {
    if (found.has(name)) continue
    const [, key, value] = name.match(/^(.+):([^:]+)$/) ?? (/^\d{8,14}$/.test(name) ? ['', 'gs1:01', name.padStart(14, '0')] : [])
    if (!key || !value) {
      found.set(name, { fault: m('faultProduct', { value: name }) })
      continue
    }
    const query = { filter: `identifiers.${literal(key)}=${literal(value)}`, perPage: 2 }
    const rows = await body(api.GET('/products', { params: { query }, signal }))
    found.set(name, rows.length === 1 && rows[0] ? { id: rows[0].id } : { fault: m(rows.length === 0 ? 'faultProduct' : 'faultSeveral', { value: name }) })
  }
  return found
}

/** So many lines are looked at until the page may draw. */
const STEP = 2_000

/** Looks at every line, as far as that can be done without creating anything. */
export async function check (kind: Kind, columns: Column[], table: Table, tell: (row: number) => void, signal: AbortSignal): Promise<Checked> {
  const good: (Prepared & { product?: string })[] = []
  const bad: Bad[] = []
  for (const [at, row] of table.rows.entries()) {
    if (at % STEP === 0) {
      tell(at)
      await new Promise((resolve) => setTimeout(resolve))
      signal.throwIfAborted()
    }
    const { prepared, faults, product } = build(kind, columns, row, at)
    if (faults.length > 0) bad.push({ at, faults })
    else good.push({ ...prepared, ...(product && { product }) })
  }
  const products = await findProducts([...new Set(good.flatMap((one) => one.product ?? []))], signal)
  const ready: Prepared[] = []
  for (const { product, ...one } of good) {
    const found = product ? products.get(product) : undefined
    if (found?.fault) bad.push({ at: one.at, faults: [found.fault] })
    else ready.push(found?.id ? { ...one, body: { ...one.body, product: found.id } } : one)
  }
  return { good: ready, bad: bad.sort((a, b) => a.at - b.at) }
}

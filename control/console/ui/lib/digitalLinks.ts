/** Where the links of a GS1 Digital Link lead: for a preview, and as the fields of a form. */
import type { ApiError, Schemas } from '../api/client'

export type TypedLink = Schemas['TypedLinkDocument']

/** What a Digital Link says. */
export interface Said { gtin: string, variant?: string | null, lot?: string | null, serial: string }

/** A target with its tags replaced; one whose value is not known is empty. */
export function expanded (href: string, said: Said): string {
  const values: Record<string, string> = { '01': said.gtin, 10: said.lot ?? '', 21: said.serial, 22: said.variant ?? '', thngId: '' }
  return href.replace(/\{(\w+)\}/g, (tag, name: string) => Object.hasOwn(values, name) ? encodeURIComponent(values[name] ?? '') : tag)
}

/** Whether a phone with this language is content with a link of that one: `pt-BR` finds `pt`, and the other way round. */
const fits = (language: string, tag: string) => {
  const [one, other] = [language.toLowerCase(), tag.toLowerCase()]
  return one === other || one.startsWith(`${other}-`) || other.startsWith(`${one}-`)
}

/** Where a scan that asks for no type leads: the default link, or one of its type in the language. */
export function chosen (links: TypedLink[], language: string): TypedLink | undefined {
  const byDefault = links.find((link) => link.default)
  const now = Date.now()
  const holds = (link: TypedLink) => (link.from ?? 0) <= now && now < (link.to ?? Infinity)
  const alike = links.filter((link) => link.linkType === byDefault?.linkType && link.type === byDefault.type && holds(link))
  return (language && alike.find((link) => link.hreflang?.some((tag) => fits(language, tag)))) || byDefault
}

export type Product = Schemas['ProductDocument']
export const SERIAL_MODES = ['none', 'template', 'overrides', 'known'] as const

/** A link as its fields show it. `link` has members without a field, which stay as they are. */
export interface LinkFields { linkType: string, href: string, title: string, languages: string, isDefault: boolean, link?: TypedLink }
/** A level; that of the GTIN is the first one and has no qualifiers. */
export interface LevelFields { variant: string, lot: string, tpx: string, description: string, links: LinkFields[] }
export interface Fields { serialMode: string, aliases: string, levels: LevelFields[] }

export const newLink = (isDefault: boolean): LinkFields => ({ linkType: 'gs1:pip', href: '', title: '', languages: '', isDefault })
export const newLevel = (): LevelFields => ({ variant: '', lot: '', tpx: '', description: '', links: [newLink(true)] })

const linkFields = (link: TypedLink): LinkFields =>
  ({ linkType: link.linkType, href: link.href, title: link.title, languages: link.hreflang?.join(', ') ?? '', isDefault: link.default === true, link })

export const fieldsOf = (product: Product): Fields => ({
  serialMode: product.serialMode ?? 'none',
  aliases: product.gtinAliases?.join(', ') ?? '',
  levels: [
    { variant: '', lot: '', tpx: '', description: '', links: (product.links ?? []).map(linkFields) },
    ...(product.levels ?? []).map(({ variant, lot, tpx, description, links }) =>
      ({ variant: variant ?? '', lot: lot ?? '', tpx: tpx ?? '', description: description ?? '', links: links.map(linkFields) }))
  ]
})

const listed = (text: string): string[] => text.split(',').map((one) => one.trim()).filter(Boolean)
const some = (text: string) => text.trim() || undefined

function linkOf ({ linkType, href, title, languages, isDefault, link }: LinkFields) {
  const hreflang = listed(languages)
  return { ...link, linkType: linkType.trim(), href: href.trim(), title: title.trim(), hreflang: hreflang.length > 0 ? hreflang : undefined, default: isDefault || undefined }
}

function members ({ serialMode, aliases, levels: [first, ...others] }: Fields) {
  return {
    links: (first?.links ?? []).map(linkOf),
    levels: others.map(({ variant, lot, tpx, description, links }) => ({ variant: some(variant), lot: some(lot), tpx: some(tpx), description: some(description), links: links.map(linkOf) })),
    serialMode,
    gtinAliases: listed(aliases)
  }
}

/** The members of a product that fields change, each as a whole. */
export function changeOf (typed: Fields, before: Product): Record<string, unknown> {
  const [now, then]: [Record<string, unknown>, Record<string, unknown>] = [members(typed), members(fieldsOf(before))]
  return Object.fromEntries(Object.entries(now).filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(then[name])))
}

/** What the API says against a member: its texts begin with the path. */
export const faultsAt = (error: ApiError | undefined, path: string): string[] =>
  (error?.errors ?? []).filter((text) => text.startsWith(path) && !/[\w[.]/.test(text[path.length] ?? ''))

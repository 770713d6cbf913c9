/** The links of a GS1 Digital Link: by level, and as the fields of a form. */
import type { ApiError, Schemas } from '../api/client'

export type TypedLink = Schemas['TypedLinkDocument']

/** Links of a level, and what it is called. That of the GTIN has no qualifiers. */
export interface Level { name: string, path: string, qualifiers: { variant?: string | null, lot?: string | null, tpx?: string | null }, links: TypedLink[] }

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

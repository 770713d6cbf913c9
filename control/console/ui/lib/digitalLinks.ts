/** Where the links of a GS1 Digital Link lead, for a preview. */
import type { Schemas } from '../api/client'

export type TypedLink = Schemas['TypedLinkDocument']

/** What a Digital Link says. */
export interface Said { gtin: string, variant?: string | null, lot?: string | null, serial: string }

/** A target with its tags replaced; one whose value is not known is empty. */
export function expanded (href: string, said: Said): string {
  const values: Record<string, string> = { '01': said.gtin, 10: said.lot ?? '', 21: said.serial, 22: said.variant ?? '', thngId: '' }
  return href.replace(/\{(\w+)\}/g, (tag, name: string) => name in values ? encodeURIComponent(values[name] ?? '') : tag)
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

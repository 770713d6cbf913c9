// Visitors' pages, as an edge draws them.

import words from 'virtual:page-texts'
import type { Schemas } from '../api/client'

export type Pages = Schemas['PagesDocument']
export type Colors = Schemas['PageColorsDocument']
export const KINDS = ['unknown', 'ended', 'suspended', 'copy', 'root'] as const
export type Kind = typeof KINDS[number]
/** Languages of which an edge has words. */
export const LANGUAGES = Object.keys(words)
/** Least contrast that is taken. */
export const MIN_CONTRAST = 4.5
/** What stands below each kind: the status and the code of the error. */
export const NUMBERS: Record<Kind, string> = { unknown: '404 · 40403', ended: '410 · 41001', suspended: '404 · 40405', copy: '403 · 40305', root: '404 · 40402' }
export const OWN_COLORS: Colors = { background: '#ffffff', text: '#1a1a1a', accent: '#0b57d0' }

/** Relative luminance of `#rrggbb`, from 0 to 1 (WCAG 2.2). */
function luminance (color: string): number {
  const [r = 0, g = 0, b = 0] = [1, 3, 5].map((at) => {
    const part = parseInt(color.slice(at, at + 2), 16) / 255
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4
  })
  return 0.2126 * r + 0.7152 * g + 0.0722 * b
}

/** From 1, the same, to 21, black and white. */
export function contrast (one: string, other: string): number {
  const [a, b] = [luminance(one), luminance(other)]
  return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05)
}

/** Of the background, the text, the button, its text, and behind the logo. */
export function shadesOf (colors: Colors | null | undefined, isDark: boolean): Record<'b' | 't' | 'a' | 'o' | 'l', string> {
  if (!colors) return isDark ? { b: '#121212', t: '#ececec', a: '#8ab4f8', o: '#121212', l: '#ffffff' } : { b: '#ffffff', t: '#1a1a1a', a: '#0b57d0', o: '#ffffff', l: '#ffffff' }
  const { background, text, accent } = colors
  return isDark && luminance(background) > luminance(text)
    ? { b: text, t: background, a: background, o: text, l: background }
    : { b: background, t: text, a: accent, o: background, l: background }
}

/** Chinese in traditional script: its tag says so, or names a region and no other script. */
const isTraditional = (tag: string) => /^zh(-[a-z0-9]{3})*-(hant|tw|hk|mo)(-|$)/.test(tag)

/** Heading and text of a kind for a visitor with a language: for its tag, then without the last part of it, those of the account, else those of an edge. */
export function textOf (pages: Pages, language: string, kind: Kind): { title: string, text: string } {
  const texts = Object.entries(pages.texts ?? {}).sort(([one], [other]) => one < other ? -1 : 1)
  const own = (fits: (tag: string) => boolean) => texts.find(([tag, of]) => of[kind]?.title && of[kind]?.text && fits(tag.toLowerCase()))?.[1][kind]
  const ours = (tag: string) => {
    const found = Object.entries(words).find(([one]) => one.toLowerCase() === tag)?.[1][kind]
    return found && { title: found[0], text: found[1] }
  }
  const find = (tag: string) => own((one) => one === tag) ?? own((one) => one.startsWith(`${tag}-`)) ?? ours(tag)
  const tag = language.toLowerCase()
  const found = isTraditional(tag)
    ? own((one) => one === tag) ?? own(isTraditional) ?? own((one) => one === 'zh') ?? ours('zh-hant')
    : tag.split('-').map((_, less, parts) => find(parts.slice(0, parts.length - less).join('-'))).find((one) => one)
  return found ?? find('en') ?? { title: '', text: '' }
}

/** The button that leads to the form of a report, in the edge's language that is next to this one. */
export function offerOf (language: string): string {
  const tag = language.toLowerCase()
  const wanted = isTraditional(tag) ? 'zh-hant' : tag.split('-')[0]
  const found = Object.entries(words).find(([one]) => one.toLowerCase() === wanted)?.[1] ?? words['en']
  return found?.['offer']?.[0] ?? ''
}

/** What is sent: without members and texts that are empty, in one order. */
export function clean (pages: Pages): Pages {
  const texts: NonNullable<Pages['texts']> = {}
  for (const tag of Object.keys(pages.texts ?? {}).sort()) {
    const own = pages.texts?.[tag]
    const kept = KINDS.flatMap((kind) => {
      const { title, text } = own?.[kind] ?? { title: '', text: '' }
      return title.trim() || text.trim() ? [[kind, { title, text }] as const] : []
    })
    if (kept.length > 0) texts[tag] = Object.fromEntries(kept)
  }
  const { url = '', label = '' } = pages.link ?? {}
  return {
    ...(pages.name?.trim() && { name: pages.name }),
    ...(pages.logo && { logo: pages.logo }),
    ...(pages.colors && { colors: { background: pages.colors.background, text: pages.colors.text, accent: pages.colors.accent } }),
    ...((url.trim() || label.trim()) && { link: { url: url.trim(), label } }),
    ...(pages.copies && { copies: pages.copies }),
    ...(pages.copies && pages.reports && { reports: true }),
    ...(pages.copies && pages.reports && pages.photos && { photos: true }),
    ...(Object.keys(texts).length > 0 && { texts })
  }
}

// Languages: a catalogue of messages each, typed by the English one. Others than English are loaded when somebody reads them.

import { en } from '../messages/en'
import { store, stored } from './stored'

export type Key = keyof typeof en
export type Catalogue = Record<Key, string>
export type Language = 'en' | 'de'

type Names<Text extends string> = Text extends `${string}{${infer Name}}${infer Rest}` ? Name | Names<Rest> : never
type Values<Of extends Key> = { [Name in Names<(typeof en)[Of]>]: string | number }
/** Keys of messages without a value in them, for tables. */
export type PlainKey = { [Of in Key]: Names<(typeof en)[Of]> extends never ? Of : never }[Key]
type Rest<Of extends Key> = Names<(typeof en)[Of]> extends never ? [] : [Values<Of>]

const loaders: Record<Exclude<Language, 'en'>, () => Promise<Catalogue>> = {
  de: async () => (await import('../messages/de')).de
}

let language = $state<Language>('en')
let catalogue = $state.raw<Catalogue>(en)
/** The language with the region of the viewer, which decides how dates and numbers are written. */
const locale = $derived(navigator.languages.find((one) => one.split('-')[0] === language) ?? language)

export const i18n = {
  get language () { return language },
  get locale () { return locale }
}

const known = (text: string | null | undefined): Language | undefined =>
  text?.startsWith('de') ? 'de' : text?.startsWith('en') ? 'en' : undefined

/** Takes the language that was chosen, or the first of the browser's that there is. */
export async function begin (): Promise<void> {
  const wanted = known(stored('language')) ?? navigator.languages.map(known).find(Boolean) ?? 'en'
  await use(wanted)
}

export async function setLanguage (to: Language): Promise<void> {
  store('language', to)
  await use(to)
}

async function use (to: Language): Promise<void> {
  catalogue = to === 'en' ? en : await loaders[to]()
  await Promise.all(blocks.map((load) => load(to)))
  language = to
  document.documentElement.lang = to
}

/** The message of a key, with its values in their places. */
export function t<Of extends Key> (key: Of, ...rest: Rest<Of>): string {
  return filled(catalogue[key], rest[0])
}

function filled (message: string, values: Record<string, string | number> | undefined): string {
  return message.replace(/\{(\w+)\}/g, (whole, name: string) => {
    const value = values?.[name]
    return value === undefined ? whole : typeof value === 'number' ? number(value) : value
  })
}

type Words = Record<string, string>
/** Keys of a block without a value in their messages. */
export type PlainOf<Block extends Words> = { [Of in keyof Block]: Names<Block[Of]> extends never ? Of : never }[keyof Block]
/** Loads a block in a language: those of screens that were opened. */
const blocks: ((to: Language) => Promise<void>)[] = []

/** A block of messages that comes with the screens that need it, and the function that reads it as `t` does. */
export async function block<const Block extends Words> (english: Block, others: Record<Exclude<Language, 'en'>, () => Promise<Record<keyof Block, string>>>) {
  type Needed<Of extends keyof Block> = Names<Block[Of]>
  let mine = $state.raw<Record<keyof Block, string>>(english)
  const load = async (to: Language) => { mine = to === 'en' ? english : await others[to]() }
  blocks.push(load)
  // Without the messages of another language English stays.
  await load(language).catch(() => {})
  return <Of extends keyof Block>(key: Of, ...rest: Needed<Of> extends never ? [] : [Record<Needed<Of>, string | number>]): string =>
    filled(mine[key], rest[0])
}

/** A number as the language writes it. */
export function number (value: number, options?: Intl.NumberFormatOptions): string {
  return new Intl.NumberFormat(locale, options).format(value)
}

export function percent (share: number): string {
  return number(share, { style: 'percent', maximumFractionDigits: share < 0.1 ? 1 : 0 })
}

/** A change against before: `+12 %`; `undefined` where there was nothing before. */
export function change (now: number, before: number): string | undefined {
  if (before === 0) return undefined
  return number((now - before) / before, { style: 'percent', maximumFractionDigits: 0, signDisplay: 'exceptZero' })
}

export function dateTime (ms: number): string {
  return new Intl.DateTimeFormat(locale, { dateStyle: 'medium', timeStyle: 'short' }).format(ms)
}

export function date (ms: number): string {
  return new Intl.DateTimeFormat(locale, { dateStyle: 'medium' }).format(ms)
}

export function time (ms: number): string {
  return new Intl.DateTimeFormat(locale, { timeStyle: 'medium' }).format(ms)
}

const STEPS: [Intl.RelativeTimeFormatUnit, number][] =
  [['day', 86_400_000], ['hour', 3_600_000], ['minute', 60_000], ['second', 1_000]]

/** How long ago: `3 hours ago`; a date where it is longer than two weeks. */
export function ago (ms: number, now = Date.now()): string {
  const passed = now - ms
  if (Math.abs(passed) > 14 * 86_400_000) return date(ms)
  const [unit, step] = STEPS.find(([, step]) => Math.abs(passed) >= step) ?? ['second', 1_000]
  return new Intl.RelativeTimeFormat(locale, { numeric: 'auto' }).format(-Math.round(passed / step), unit)
}

/** The name of a country by its code. */
export function country (code: string | null | undefined): string {
  if (!code) return t('unknown')
  try {
    return new Intl.DisplayNames([language], { type: 'region' }).of(code) ?? code
  } catch {
    return code
  }
}

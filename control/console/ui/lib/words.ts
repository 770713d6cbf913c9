// Words for values of the API.

import { t, type PlainKey } from './i18n.svelte'

export type Words = Record<string, PlainKey>

export const KINDS: Words = { counterfeit: 'counterfeit', grayMarket: 'grayMarket' }
export const VERDICTS: Words = { positive: 'verdictPositive', negative: 'verdictNegative', unverified: 'verdictUnverified' }
export const DEVICES: Words = { phone: 'devicePhone', tablet: 'deviceTablet', desktop: 'deviceDesktop', other: 'deviceOther' }

/** The word for a value, or the value where there is none. */
export function word (words: Words, value: string | null | undefined): string {
  const key = value ? words[value] : undefined
  return key ? t(key) : value ?? t('unknown')
}

/** A value of any kind as text. */
export const asText = (value: unknown): string => typeof value === 'string' ? value : JSON.stringify(value)

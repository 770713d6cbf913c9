// Ranges of time, their periods, and what the statistics answer about them.

import { api, body, type Schemas } from '../api/client'

export type Statistics = Schemas['StatisticsDocument']
export type Interval = 'hour' | 'day' | 'week'
export type Span = '24h' | '7d' | '30d' | '90d' | '365d'

export const SPANS: Span[] = ['24h', '7d', '30d', '90d', '365d']
const HOUR = 3_600_000
const DAYS: Record<Span, number> = { '24h': 1, '7d': 7, '30d': 30, '90d': 90, '365d': 365 }

export interface Range {
  span: Span
  interval: Interval
  /** Whole hours, as the statistics round them. */
  from: number
  to: number
  /** The same time before: as long, and as far into its last period. */
  before: { from: number, to: number }
  timeZone: string
}

export const spanOf = (text: string | null): Span => SPANS.find((span) => span === text) ?? '7d'

/** The zone of the viewer, if its days begin at whole hours of UTC; counts are kept by these. */
export function zone (now: number): string {
  const offset = new Date(now).getTimezoneOffset()
  return offset % 60 === 0 ? Intl.DateTimeFormat().resolvedOptions().timeZone : 'UTC'
}

/** The beginning of the day `days` days ago, in a zone. */
function day (now: number, days: number, timeZone: string): number {
  const at = new Date(now)
  if (timeZone === 'UTC') return Date.UTC(at.getUTCFullYear(), at.getUTCMonth(), at.getUTCDate() - days)
  return new Date(at.getFullYear(), at.getMonth(), at.getDate() - days).getTime()
}

export function rangeOf (span: Span, now: number, timeZone = zone(now)): Range {
  const to = Math.ceil(now / HOUR) * HOUR
  const days = DAYS[span]
  if (span === '24h') {
    const from = to - 24 * HOUR
    return { span, interval: 'hour', from, to, before: { from: from - 24 * HOUR, to: from }, timeZone }
  }
  const from = day(now, days - 1, timeZone)
  const passed = to - from
  const start = day(now, 2 * days - 1, timeZone)
  return { span, interval: span === '365d' ? 'week' : 'day', from, to, before: { from: start, to: start + passed }, timeZone }
}

const DAY = 24 * HOUR
/** Most days of a question by link that names none. */
const LINK_DAYS = 31

/** The days of UTC that a range is in, the last ones if there are too many: links are counted by these. */
export function daysOf ({ from, to }: { from: number, to: number }): { from: number, to: number, days: number } {
  const end = Math.ceil(to / DAY) * DAY
  const days = Math.min(LINK_DAYS, end / DAY - Math.floor(from / DAY))
  return { from: end - days * DAY, to: end, days }
}

/** The beginnings of all periods of a range: the answer leaves those without a scan out. */
export function periods (from: number, to: number, interval: Interval, timeZone: string): number[] {
  const found: number[] = []
  const isUtc = timeZone === 'UTC'
  for (let at = from; at < to && found.length < 1_000;) {
    found.push(at)
    const date = new Date(at)
    if (interval === 'hour') at += HOUR
    else if (interval === 'day') at = isUtc ? day(at, -1, 'UTC') : day(at, -1, timeZone)
    else {
      // Weeks begin on Monday; the first one may be cut.
      const weekday = ((isUtc ? date.getUTCDay() : date.getDay()) + 6) % 7
      at = day(at, weekday - 7, timeZone)
    }
  }
  return found
}

/** The counts of each period, with zero where there was none. */
export function series (answer: Statistics, at: number[]): number[] {
  const counts = new Map<number, number>()
  for (const row of answer.rows as Row[]) counts.set(row.from, (counts.get(row.from) ?? 0) + row.scans)
  return at.map((begin) => counts.get(begin) ?? 0)
}

export interface Row {
  from: number, to: number, scans: number, newDevices: number, robots: number
  country?: string | null, product?: string | null, link?: string | null, device?: string | null, verdict?: string | null
}

export interface Question { from: number, to: number, interval?: Interval, groupBy?: string, filter?: string, top?: number, timeZone?: string }

export function ask (question: Question, signal?: AbortSignal): Promise<Statistics> {
  const query = { ...question, from: String(question.from), to: String(question.to) }
  return body(api.GET('/scans/stats', { params: { query }, signal })) as Promise<Statistics>
}

/** The same question as a URL, which answers a table. */
export function path (question: Question): string {
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(question)) if (value !== undefined) query.set(name, String(value))
  return `/scans/stats?${query}`
}

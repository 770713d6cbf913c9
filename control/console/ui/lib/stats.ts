// Ranges of time, their periods, and what the statistics answer about them.

import { api, body, type Schemas } from '../api/client'

export type Statistics = Schemas['StatisticsDocument']
export type Interval = 'hour' | 'day' | 'week'
export type Span = '24h' | '7d' | '30d' | '90d' | '365d'

export const SPANS: Span[] = ['24h', '7d', '30d', '90d', '365d']
const HOUR = 3_600_000
const DAY = 24 * HOUR
/** 52 weeks, so that the weeks of the year before begin on the same days. */
const DAYS: Record<Span, number> = { '24h': 1, '7d': 7, '30d': 30, '90d': 90, '365d': 364 }

export interface Range {
  span: Span
  interval: Interval
  /** Whole hours, as the statistics round them. */
  from: number
  to: number
  /** The same time before. Its last period is over where that of the range has only begun. */
  before: { from: number, to: number }
  timeZone: string
}

export const spanOf = (text: string | null): Span => SPANS.find((span) => span === text) ?? '7d'

/** Whether days of the viewer begin within an hour of UTC, in summer or in winter: counts are kept by hours. */
export function hasUtcDays (now: number): boolean {
  const year = new Date(now).getFullYear()
  return [0, 6].some((month) => new Date(year, month).getTimezoneOffset() % 60 !== 0)
}

const zone = (now: number) => hasUtcDays(now) ? 'UTC' : Intl.DateTimeFormat().resolvedOptions().timeZone

/** The beginning of the day `days` days ago, in a zone. */
function day (now: number, days: number, timeZone: string): number {
  const at = new Date(now)
  if (timeZone === 'UTC') return Date.UTC(at.getUTCFullYear(), at.getUTCMonth(), at.getUTCDate() - days)
  return new Date(at.getFullYear(), at.getMonth(), at.getDate() - days).getTime()
}

/** A year and the one before are counted by the day of UTC: counts by the hour are kept for 400 days. */
export function rangeOf (span: Span, now: number, timeZone = span === '365d' ? 'UTC' : zone(now)): Range {
  const unit = timeZone === 'UTC' && span !== '24h' ? DAY : HOUR
  const to = Math.ceil(now / unit) * unit
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
  const counts = at.map(() => 0)
  for (const row of answer.rows as Row[]) {
    // The time zones of the browser may be older than those of the server.
    const index = Math.max(0, at.findLastIndex((begin) => begin <= row.from))
    if (index in counts) counts[index] = (counts[index] ?? 0) + row.scans
  }
  return counts
}

export interface Row {
  from: number, to: number, scans: number, newDevices: number, robots: number
  country?: string | null, region?: string | null, product?: string | null, link?: string | null, device?: string | null, verdict?: string | null
}

export interface Question { from: number, to: number, interval?: Interval, groupBy?: string, filter?: string, top?: number, timeZone?: string }

/** UTC is what the statistics take when nobody names a zone; links take no name. */
const zoneOf = (timeZone?: string) => timeZone === 'UTC' ? {} : { timeZone }

export function askStatistics ({ timeZone, ...question }: Question, signal?: AbortSignal): Promise<Statistics> {
  const query = { ...question, ...zoneOf(timeZone), from: String(question.from), to: String(question.to) }
  return body(api.GET('/scans/stats', { params: { query }, signal })) as Promise<Statistics>
}

/** The counts of a range and of the time before. */
export async function compare (range: Range, filter: string | undefined, signal: AbortSignal) {
  const { span, from, to, before, interval, timeZone } = range
  const more = { interval, timeZone, ...(filter && { filter }) }
  const [now, earlier] = await Promise.all([askStatistics({ from, to, ...more }, signal), askStatistics({ ...before, ...more }, signal)])
  const at = periods(from, to, interval, timeZone)
  const counts = series(now, at)
  const then = series(earlier, periods(before.from, before.to, interval, timeZone))
  // A period that has only begun is not compared with one that is over.
  const isCut = span === '24h' || timeZone === 'UTC'
  const sum = (total: number, counts: number[]) => total - (isCut ? counts.at(-1) ?? 0 : 0)
  return {
    at, now: counts, before: at.map((_, index) => then[index] ?? 0), totals: now.totals, earlier: earlier.totals,
    compared: [sum(now.totals.scans, counts), sum(earlier.totals.scans, then)] as const, interval, timeZone
  }
}

/** The same question as a URL, which answers a table. */
export function statisticsPath (question: Question): string {
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries({ ...question, timeZone: undefined, ...zoneOf(question.timeZone) })) if (value !== undefined) query.set(name, String(value))
  return `/scans/stats?${query}`
}

// When links lead to their target, as edges decide it.

export type Closed = 'ended' | 'paused' | 'scheduled'
interface Times { validFrom?: number | null, validUntil?: number | null, maxScans?: number | null, countedScans?: number | null, status: string }

/** Why a link does not lead to its target, as edges answer. If several reasons hold, the first of: ended, paused, scheduled. */
export function closed (link: Times, now = Date.now()): Closed | undefined {
  if (typeof link.validUntil === 'number' && now >= link.validUntil) return 'ended'
  if (typeof link.maxScans === 'number' && (link.countedScans ?? 0) >= link.maxScans) return 'ended'
  if (link.status === 'paused') return 'paused'
  return typeof link.validFrom === 'number' && now < link.validFrom ? 'scheduled' : undefined
}

const two = (n: number) => String(n).padStart(2, '0')

/** A time as fields for local times hold it, to the second; empty for none, and for what no field can hold. */
export function fieldOf (ms: number | null | undefined): string {
  const at = new Date(ms ?? NaN)
  const year = at.getFullYear()
  if (Number.isNaN(year) || year > 9999) return ''
  return `${String(year).padStart(4, '0')}-${two(at.getMonth() + 1)}-${two(at.getDate())}T${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`
}

/** The time in such a field; nothing for an empty one. */
export function timeOf (field: string): number | null {
  const at = new Date(field).getTime()
  return Number.isNaN(at) ? null : at
}

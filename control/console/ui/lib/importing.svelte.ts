// The import that this page carries out, part by part. It goes on while other screens are shown.
//
// Each part has an idempotency key that follows from its content: a part that is sent again within a day, after a lost
// answer or by the same file, is answered as before and creates nothing.

import { ApiError, OVER, api, body } from '../api/client'
import { m } from '../messages/manage'
import type { Table } from './csv'
import { t } from './i18n.svelte'
import type { Bad, Checked, Column, Kind, Prepared } from './imports'
import { session } from './session.svelte'

/** Rows and bytes of a request: far below what the API takes, so that its answer comes soon. */
const MOST_ROWS = 500
const MOST_BYTES = 400_000
const RETRY_MS = 2_000
const LONGEST_WAIT_MS = 30_000

interface Result { status: number, id?: string, shortUrl?: string, errors?: string[] }
interface Row { at: number, id?: string, shortUrl?: string }

/** The file that was chosen, and what its columns become. It outlasts a look at other screens. */
export const draft = $state<{ name: string, table?: Table, columns: Column[] }>({ name: '', columns: [] })

let state = $state<'none' | 'running' | 'stopped' | 'finished'>('none')
let kind = $state<Kind>('items')
let name = $state('')
let total = $state(0)
let done = $state(0)
let created = $state(0)
let already = $state(0)
let rejected = $state(0)
/** Why nothing moves at the moment. */
let waits = $state('')
let fault = $state.raw<ApiError>()
let isStopping = $state(false)

let table: Table = { header: [], rows: [], lines: [] }
let good: Prepared[] = []
let left: Bad[] = []
let rows: Row[] = []
let rejects: Bad[] = []

export const importing = {
  get state () { return state },
  get isUnderWay () { return state === 'running' || state === 'stopped' },
  get isStopping () { return isStopping },
  get kind () { return kind },
  get name () { return name },
  get total () { return total },
  get done () { return done },
  get created () { return created },
  get already () { return already },
  get rejected () { return rejected },
  get leftOut () { return left.length },
  get waits () { return waits },
  get fault () { return fault }
}

// The browser asks before an import is cut off.
addEventListener('beforeunload', (event) => { if (state === 'running') event.preventDefault() })

export function start (of: Kind, file: string, from: Table, checked: Checked): void {
  kind = of
  name = file
  table = from
  good = checked.good
  left = checked.bad
  rows = []
  rejects = []
  total = good.length
  done = created = already = rejected = 0
  void run()
}

/** Stops after the part that is under way. */
export function stop (): void { isStopping = true }
export function goOn (): void { if (state === 'stopped') void run() }
export function forget (): void {
  state = 'none'
  table = { header: [], rows: [], lines: [] }
  good = []
  left = []
  rows = []
  rejects = []
}

/** The lines that were not taken, with the reason, as a file that can be imported again once it is put right. */
export const rejectedLines = (): string[][] => [[...table.header, 'fault'],
  ...[...left, ...rejects].sort((a, b) => a.at - b.at).map(({ at, faults }) => [...cells(at), faults.join('; ')])]

/** Each line that was taken, with the id of what it became, and its short URL. */
export function resultLines (): string[][] {
  const hasLinks = rows.some((row) => row.shortUrl)
  return [[...table.header, ...(kind === 'links' ? [] : ['id']), ...(hasLinks ? ['shortUrl'] : [])],
    ...rows.map((row) => [...cells(row.at), ...(kind === 'links' ? [] : [row.id ?? '']), ...(hasLinks ? [row.shortUrl ?? ''] : [])])]
}
const cells = (at: number): string[] => table.header.map((_, index) => table.rows[at]?.[index] ?? '')

/** The next part. Its borders follow from the lines alone, so that it is the same part in another try. */
function part (from: number): Prepared[] {
  const found: Prepared[] = []
  let bytes = 0
  for (let at = from; at < good.length && found.length < MOST_ROWS; at++) {
    const one = good[at] as Prepared
    bytes += JSON.stringify(one.body).length
    if (found.length > 0 && bytes > MOST_BYTES) break
    found.push(one)
  }
  return found
}

async function run (): Promise<void> {
  state = 'running'
  isStopping = false
  fault = undefined
  try {
    while (done < good.length && !isStopping) {
      const next = part(done)
      await settle(next)
      done += next.length
    }
  } catch (error) {
    // After a stop no failure is shown.
    if (!isStopping) fault = error instanceof ApiError ? error : new ApiError(-1, 0, [String(error)])
  }
  waits = ''
  isStopping = false
  state = done < good.length ? 'stopped' : 'finished'
}

const PATHS = { items: '/thngs', products: '/products', links: '/redirections', actions: '/jobs/actions' } as const

async function settle (lines: Prepared[]): Promise<void> {
  const results = await post(PATHS[kind], lines.map((line) => line.body), `${done}`)
  const made = lines.flatMap((line, index) => {
    const result = results[index]
    return result && result.status < 300 ? [{ line, row: { at: line.at, id: result.id, shortUrl: result.shortUrl } as Row }] : []
  })
  const linked = made.filter(({ line }) => line.target)
  const links = linked.length === 0 ? [] : await post('/redirections', linked.map(({ line, row }) => ({ platformId: row.id, defaultRedirectUrl: line.target })), `${done} links`)
  // Counted only once the whole part is settled: a part that failed half-way is sent again.
  for (const [index, line] of lines.entries()) {
    const result = results[index]
    if (result?.status === 409) already += 1
    if (!result || result.status >= 300) {
      if (result?.status !== 409) rejected += 1
      rejects.push({ at: line.at, faults: result?.errors ?? [t('unknown')] })
    }
  }
  created += made.length
  rows.push(...made.map(({ row }) => row))
  for (const [index, { line, row }] of linked.entries()) {
    const result = links[index]
    if (result && result.status < 300) row.shortUrl = result.shortUrl
    else {
      rejected += 1
      rejects.push({ at: line.at, faults: [m('itemButNoLink', { id: row.id ?? '' }), ...(result?.errors ?? [])] })
    }
  }
}

async function post (path: '/thngs' | '/products' | '/redirections' | '/jobs/actions', bodies: unknown[], place: string): Promise<Result[]> {
  const key = await digest(`${session.account} ${path} ${place} ${JSON.stringify(bodies)}`)
  for (let tries = 0; ; tries++) {
    try {
      const params = { header: { 'Idempotency-Key': key } }
      const answer = await body(api.POST(path as '/thngs', { params, body: bodies as never }))
      waits = ''
      return answer as unknown as Result[]
    } catch (error) {
      if (!(error instanceof ApiError) || !isPassing(error)) throw error
      waits = error.status === 0 ? t('faultNoAnswer') : error.status === 401 ? t('sessionOver') : error.errors.join(' ') || t('faultServer')
      await pause((error.retryAfter ?? 0) * 1_000 || Math.min(LONGEST_WAIT_MS, RETRY_MS * 2 ** Math.min(tries, 5)))
    }
  }
}

/** What goes away by itself, or once somebody signs in again. */
const isPassing = (error: ApiError): boolean =>
  error.status === 0 || error.status === 429 || error.status >= 500 || (error.status === 401 && OVER.includes(error.code))

/** Waits, and for as long as the session is over; ends at once when it is to stop. */
async function pause (ms: number): Promise<void> {
  const until = Date.now() + ms
  while (Date.now() < until || session.isOver) {
    await new Promise((resolve) => setTimeout(resolve, 200))
    if (isStopping) throw new Error('stopped')
  }
}

async function digest (text: string): Promise<string> {
  const bytes = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text))
  return `console-${[...new Uint8Array(bytes)].map((byte) => byte.toString(16).padStart(2, '0')).join('')}`
}

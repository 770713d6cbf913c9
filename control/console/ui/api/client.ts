// The API, as its own description has it. The console has no other way in than programs have.

import createClient from 'openapi-fetch'
import { connection } from '../lib/connection.svelte'
import { apiRoot, origin } from '../lib/root'
import type { components, paths } from './schema'

export type Schemas = components['schemas']

/** What the API refused, or that nothing answered (`status` 0). */
export class ApiError extends Error {
  constructor (
    readonly status: number,
    readonly code: number,
    readonly errors: string[],
    readonly requestId?: string,
    readonly retryAfter?: number
  ) {
    super(errors.join(' '))
  }
}

/** What is done when the session is over: set by the session, which needs the API itself. */
export const hooks: { expired?: () => void } = {}

/** A session that is over: its key is missing or does not work any more. */
export const OVER = [40101, 40102, 40104]

async function send (request: Request): Promise<Response> {
  try {
    const response = await fetch(request)
    connection.answered()
    return response
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') throw error
    connection.lost()
    throw new ApiError(0, 0, [])
  }
}

// What is misspelt is refused and not ignored.
const headers = { Prefer: 'handling=strict', Accept: 'application/json' }

/** Operations of the public API. */
export const api = createClient<paths>({ baseUrl: apiRoot, headers, fetch: send })
/** Operations for the console: their paths begin with `/console/api/`. */
export const own = createClient<paths>({ baseUrl: origin, headers: { Accept: 'application/json' }, fetch: send })

type Answer<T> = { data?: T, error?: unknown, response: Response }

async function refused (answer: { error?: unknown, response: Response }): Promise<never> {
  const { response } = answer
  const problem = (answer.error ?? {}) as { code?: number, errors?: string[] }
  const code = Number(problem.code ?? 0)
  if (response.status === 401 && OVER.includes(code)) hooks.expired?.()
  throw new ApiError(
    response.status,
    code,
    Array.isArray(problem.errors) ? problem.errors : [],
    response.headers.get('x-request-id') ?? undefined,
    Number(response.headers.get('retry-after')) || undefined
  )
}

/** The body of an answer. */
export async function body<T> (asked: Promise<Answer<T>>): Promise<T> {
  const answer = await asked
  if (!answer.response.ok) return await refused(answer)
  return answer.data as T
}

/** The body and what was said beside it. */
export async function whole<T> (asked: Promise<Answer<T>>): Promise<{ data: T, response: Response }> {
  const answer = await asked
  if (!answer.response.ok) return await refused(answer)
  return { data: answer.data as T, response: answer.response }
}

/** Rows of a list, and the token of the next page. */
export interface Page<Row> { rows: Row[], next?: string }

export async function page<Row> (asked: Promise<Answer<Row[]>>): Promise<Page<Row>> {
  const { data, response } = await whole(asked)
  return { rows: data, next: nextToken(response.headers.get('link')) }
}

/** The token of the page that `Link` names as the next one. The URL in it is percent-encoded as a whole. */
export function nextToken (link: string | null): string | undefined {
  const found = link?.match(/<([^>]+)>;\s*rel="?next"?/)?.[1]
  if (!found) return undefined
  const url = found.includes('://') ? found : decodeURIComponent(found)
  return new URL(url, apiRoot).searchParams.get('nextPageToken') ?? undefined
}

/** Characters that mean something in a filter lose their meaning. */
export function literal (text: string): string {
  return text.replace(/[\\&|!()=<>~,]/g, (sign) => `\\${sign}`)
}

/** A file of another kind than JSON. */
export async function file (path: string, accept: string): Promise<Blob> {
  const response = await send(new Request(`${apiRoot}${path}`, { headers: { Accept: accept, Prefer: 'handling=strict' } }))
  if (!response.ok) return await refused({ response, error: await response.json().catch(() => undefined) })
  return await response.blob()
}

/** Puts the content of a file. */
export async function upload (path: string, content: Blob): Promise<void> {
  const response = await send(new Request(`${apiRoot}${path}`, { method: 'PUT', body: content, headers }))
  if (!response.ok) await refused({ response, error: await response.json().catch(() => undefined) })
}

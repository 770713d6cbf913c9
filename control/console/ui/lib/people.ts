// People of the account: lists hold ids only.

import { api, page } from '../api/client'
import { can, session } from './session.svelte'

export interface Person { id: string, operator?: string, email?: string, role?: string, status?: string, policies?: string[] }

/** An account has at most ten pages of them. */
const MOST_PAGES = 10

/** Everybody of the account; nobody for who may not see that. */
export async function everybody (signal: AbortSignal): Promise<Person[]> {
  const found: Person[] = []
  if (!can('operators', 'list') || session.account === '') return found
  let after: string | undefined
  for (let pages = 0; pages === 0 || (after && pages < MOST_PAGES); pages++) {
    const query = { perPage: 100, ...(after && { nextPageToken: after }) }
    const asked = api.GET('/accounts/{id}/operatorAccess', { params: { path: { id: session.account }, query }, signal })
    const { rows, next } = await page(asked as unknown as Promise<{ data?: Person[], response: Response }>)
    found.push(...rows)
    after = next
  }
  return found
}

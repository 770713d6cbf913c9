// Names of products and items, by their ids: lists hold ids only.

import { api, body } from '../api/client'
import { can } from './session.svelte'

const MOST = 100

async function named (ids: (string | null | undefined)[], ask: (ids: string) => Promise<{ id: string, name: string }[]>): Promise<Map<string, string>> {
  const wanted = [...new Set(ids.filter((id): id is string => !!id))]
  const found = new Map<string, string>()
  for (let at = 0; at < wanted.length; at += MOST) {
    // A name is no reason to fail: the id stands in its place.
    const rows = await ask(wanted.slice(at, at + MOST).join(',')).catch(() => [])
    for (const row of rows) found.set(row.id, row.name)
  }
  return found
}

export const productNames = (ids: (string | null | undefined)[]): Promise<Map<string, string>> =>
  can('products', 'list')
    ? named(ids, (ids) => body(api.GET('/products', { params: { query: { ids, perPage: MOST } } })))
    : Promise.resolve(new Map())

export const itemNames = (ids: (string | null | undefined)[]): Promise<Map<string, string>> =>
  can('thngs', 'list')
    ? named(ids, (ids) => body(api.GET('/thngs', { params: { query: { ids, perPage: MOST } } })))
    : Promise.resolve(new Map())

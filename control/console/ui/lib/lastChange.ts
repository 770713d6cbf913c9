// Who changed something last: told to whoever meets that change.

import { api, literal, page } from '../api/client'
import { ago } from './i18n.svelte'
import { everybody } from './people'
import { can } from './session.svelte'

/** By whom and when a resource was changed last, by the audit trail; nothing for who may not see that. */
export async function lastChange (resource: string, id: string): Promise<{ who: string, when: string } | undefined> {
  if (!can('audit', 'list')) return undefined
  try {
    const filter = `resource=${resource}&resourceId=${literal(id)}`
    const [{ rows: [entry] }, people] = await Promise.all([
      page(api.GET('/audit', { params: { query: { filter, perPage: 1 } } })), everybody(new AbortController().signal)
    ])
    if (!entry) return undefined
    return { who: people.find((one) => one.operator === entry.actor)?.email || entry.actor || entry.actorType, when: ago(entry.createdAt) }
  } catch {
    // The conflict is told without it.
    return undefined
  }
}

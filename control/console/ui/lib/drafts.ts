// Targets and visitors' pages that were typed and not saved: they outlast a move to another screen.

import type { Schemas } from '../api/client'
import type { Pages } from './pages'

type Link = Schemas['RedirectionDocument']
/** Of each link, by domain and short id: what was typed, and the link as it was then. */
export const drafts = new Map<string, { target: string, opened: Link }>()
/** Of visitors' pages, by domain, or by nothing for those of all domains: the state that was read and its tag, and what was typed over it. */
export const pageDrafts = new Map<string, { opened: string, draft: Pages, tag: string }>()

export function forgetDrafts (): void {
  drafts.clear()
  pageDrafts.clear()
}

// The browser asks before they are lost.
addEventListener('beforeunload', (event) => { if (drafts.size + pageDrafts.size > 0) event.preventDefault() })

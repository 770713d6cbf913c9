// Targets that were typed and not saved: they outlast a move to another screen.

import type { Schemas } from '../api/client'

type Link = Schemas['RedirectionDocument']
/** Of each link, by domain and short id: what was typed, and the link as it was then. */
export const drafts = new Map<string, { target: string, opened: Link }>()

// The browser asks before they are lost.
addEventListener('beforeunload', (event) => { if (drafts.size > 0) event.preventDefault() })

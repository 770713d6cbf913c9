// The states of cases, and how they look.

import type { PlainKey } from './i18n.svelte'

export const CASES: Record<string, [PlainKey, string]> = { open: ['caseOpen', 'warn'], confirmed: ['caseConfirmed', 'bad'], dismissed: ['caseDismissed', ''] }

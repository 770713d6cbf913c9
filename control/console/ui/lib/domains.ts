// The states of short domains, and how they look.

import type { DomainKey } from '../messages/domains'

export const DOMAIN_STATES: Record<string, [DomainKey, string, DomainKey]> = {
  pending: ['pending', '', 'pendingHint'], verified: ['verified', 'good', 'verifiedHint'], unproven: ['unproven', 'warn', 'unprovenHint'], refused: ['refused', 'bad', 'refusedHint']
}

// The print order that is being typed: it outlasts a look at other screens.

import { emptyDraft, type Draft } from './printing'

export const draft = $state<Draft>(emptyDraft())
/** What was sent last, and its idempotency key. */
let sent = { body: '', key: '' }
/**
 * The idempotency key of a body: a repeat of what may have been accepted orders nothing twice, also after a look at other screens, or
 * when a try between was refused. No answer to a refusal is kept.
 */
export function keyOf (body: string): string {
  if (sent.body !== body) sent = { body, key: `console-${crypto.randomUUID()}` }
  return sent.key
}
export const clearDraft = (): void => {
  Object.assign(draft, emptyDraft())
  sent = { body: '', key: '' }
}

// What webhooks and their deliveries are called, and who may do what with them.

import type { Schemas } from '../api/client'
import type { ManageKey } from '../messages/manage'
import { can } from './session.svelte'

export type Webhook = Schemas['WebhookDocument']
export type Delivery = Schemas['WebhookDeliveryDocument']

/** Payloads contain exact places. */
export const mayReadDeliveries = (): boolean => can('webhooks', 'read', 'list') && can('personalData', 'read')
/** A webhook or reaction receives every event of the account, so it needs the right to personal data. */
export const mayWrite = (subject: 'webhooks' | 'reactions'): boolean => can(subject, 'create', 'update', 'delete') && can('personalData', 'read')

const STATES: Record<string, [ManageKey, string]> = { active: ['active', 'good'], paused: ['paused', 'warn'], disabled: ['disabled', ''] }

/** The state of a webhook; `waits` is the event that was tried in vain and waits longest. */
export function stateOf (webhook: Webhook, waits?: Delivery): [ManageKey, string] {
  if (webhook.status === 'active' && waits) return ['failing', 'bad']
  return STATES[webhook.status] ?? ['disabled', '']
}

export const DELIVERY: Record<string, [ManageKey, string]> = { pending: ['pending', 'warn'], delivered: ['delivered', 'good'], dead: ['dead', 'bad'] }

/** Words that commas separate. */
export const words = (text: string): string[] => text.split(',').map((one) => one.trim()).filter(Boolean)

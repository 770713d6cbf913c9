// Erasures of personal data: their states, and whose data they are about.

import type { Schemas } from '../api/client'
import { privacy as m } from '../messages/privacy'

export type Erasure = Schemas['ErasureDocument']

export const STATES = { ENQUEUED: '', EXECUTING: 'warn', COMPLETED: 'good' } as const
export type State = keyof typeof STATES
export const isKnown = (status: string): status is State => status in STATES
/** Whether nothing comes any more. A state that is new here is taken for one that stays. */
export const isOver = (erasure: { status: string }): boolean => erasure.status === 'COMPLETED' || !isKnown(erasure.status)

const KINDS = ['user', 'thng', 'network', 'age'] as const
/** The type in words, or as the API has it. */
export const kindOf = (erasure: Erasure): string => {
  const kind = KINDS.find((one) => one === erasure.type)
  return kind ? m(kind) : erasure.type
}
/** Whose data it is: an id, a network, or how many users. */
export const subjectOf = (erasure: Erasure): string =>
  erasure.user ?? erasure.thng ?? erasure.network ?? (erasure.users ? m('users', { count: erasure.users.length }) : '')

export const ROWS = ['actions', 'scans', 'webhookMessages', 'reactionTasks', 'unknownScans', 'profiles', 'standings'] as const
export const rowsOf = (erasure: Erasure): number => ROWS.reduce((sum, name) => sum + erasure.rows[name], 0)

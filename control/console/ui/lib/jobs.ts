// The states of jobs, and how they look.

import type { ManageKey } from '../messages/manage'

export const JOB_STATES: Record<string, [ManageKey, string]> = {
  ENQUEUED: ['ENQUEUED', ''], STARTING: ['STARTING', ''], EXECUTING: ['EXECUTING', 'warn'], CANCELLING: ['CANCELLING', 'warn'],
  COMPLETED: ['COMPLETED', 'good'], COMPLETED_WITH_FAILURES: ['COMPLETED_WITH_FAILURES', 'warn'], CANCELLED: ['CANCELLED', ''], FAILED: ['FAILED', 'bad']
}

const OVER = ['COMPLETED', 'COMPLETED_WITH_FAILURES', 'CANCELLED', 'FAILED']
/** Whether nothing comes any more. A state that is new here is taken for one that stays. */
export const isOver = (job: { status: string }): boolean => OVER.includes(job.status) || !(job.status in JOB_STATES)

// Edges, as the state of the service has them.

import { api, body, type Schemas } from '../api/client'

export interface Edge {
  edgeId: string
  region: string
  /** Version of its binary. */
  build: string
  reachable: boolean
  applied: number
  /** Changes that it is behind. */
  lag: number
  silentMs: number
  /** Changes that it could not read, newest last. */
  rejected: number[]
  /** The replica of control that it follows; none where one process is all there is. */
  replica?: string
}
export type Status = Omit<Schemas['StatusDocument'], 'edges'> & { edges: Edge[] }

/** So many changes behind is more than a moment's lag. */
const FAR_BEHIND = 100

export const isLate = (edge: Edge): boolean => edge.lag > FAR_BEHIND
/** Whether somebody should look at it. */
export const isBad = (edge: Edge): boolean => !edge.reachable || isLate(edge) || edge.rejected.length > 0

export const askStatus = async (signal?: AbortSignal): Promise<Status> =>
  await body(api.GET('/status', { signal })) as unknown as Status

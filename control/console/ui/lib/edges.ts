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

/** Which edges have a change. `away` names those that are known not to have it. */
export interface Confirmed { ms?: number, isEverywhere: boolean, away: string }

/** Reads what the API says of a change: `rev=812; acked=3; members=3; ms=4; unreachable=b`. */
export function confirmedBy (response: Response): Confirmed {
  const text = response.headers.get('x-waymark-edges') ?? ''
  const count = (name: string) => Number(text.match(new RegExp(`\\b${name}=(\\d+)`))?.[1] ?? 0)
  const away = [...text.matchAll(/(?:lagging|unreachable)=([^;]+)/g)].map((match) => match[1]?.trim()).join(', ')
  return { ms: count('ms'), isEverywhere: response.status === 200 && count('members') > 0 && away === '', away }
}

// What a screen loads: again when what it depends on changes, when a session begins again, and when the server is back.

import { ApiError } from '../api/client'
import { connection } from './connection.svelte'
import { session } from './session.svelte'

export interface Loaded<T> {
  readonly data: T | undefined
  readonly error: ApiError | undefined
  readonly isLoading: boolean
  again: () => void
  put: (data: T) => void
}

/** Loads by a function; what it reads before its first `await` is what it depends on. Where `may` says no, nothing is asked for. */
export function load<T> (run: (signal: AbortSignal) => Promise<T>, may: () => boolean = () => true): Loaded<T> {
  let data = $state.raw<T>()
  let error = $state.raw<ApiError>()
  let isLoading = $state(true)
  let turn = $state(0)
  $effect(() => {
    void [turn, connection.turn, session.turn]
    if (!may()) {
      isLoading = false
      return
    }
    const abort = new AbortController()
    isLoading = true
    run(abort.signal).then(
      (found) => {
        if (abort.signal.aborted) return
        data = found
        error = undefined
        isLoading = false
      },
      (fault: unknown) => {
        if (abort.signal.aborted) return
        // A fault of our own is shown like one of the server, and told to whoever looks.
        if (!(fault instanceof ApiError)) console.error(fault)
        error = fault instanceof ApiError ? fault : new ApiError(-1, 0, [String(fault)])
        isLoading = false
      }
    )
    return () => abort.abort()
  })
  return {
    get data () { return data },
    get error () { return error },
    get isLoading () { return isLoading },
    again () { turn += 1 },
    put (found: T) { data = found }
  }
}

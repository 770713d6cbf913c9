// What the server answers to a question that somebody may change meanwhile.

import type { ApiError } from '../api/client'

export interface Question<T> {
  /** The answer to what is asked now. */
  readonly answer: T | undefined
  readonly fault: ApiError | undefined
  readonly isBusy: boolean
  /** Shows nothing until it is asked again. */
  forget: () => void
  ask: (send: () => Promise<T>) => Promise<void>
}

/** Asks, and shows no answer to another question. */
export function question<T> (): Question<T> {
  let answer = $state.raw<T>()
  let fault = $state.raw<ApiError>()
  let isBusy = $state(false)
  /** Counts questions and changes of what is asked. */
  let turn = 0
  function forget () {
    turn += 1
    answer = fault = undefined
  }
  return {
    get answer () { return answer },
    get fault () { return fault },
    get isBusy () { return isBusy },
    forget,
    async ask (send) {
      isBusy = true
      forget()
      const asked = turn
      try {
        const found = await send()
        if (asked === turn) answer = found
      } catch (error) {
        if (asked === turn) fault = error as ApiError
      } finally {
        isBusy = false
      }
    }
  }
}

// Whether the server answers. While it does not, the page says so, tries again, and keeps what is on it.

import { apiRoot } from './root'

/** How often the server is tried while it does not answer. */
const RETRY_MS = 1_500

let isLost = $state(false)
/** Grows when the server answers again: what could not be loaded is loaded again. */
let turn = $state(0)
let timer: ReturnType<typeof setTimeout> | undefined

export const connection = {
  get isLost () { return isLost },
  get turn () { return turn },
  answered () {
    if (!isLost) return
    isLost = false
    clearTimeout(timer)
    turn += 1
  },
  lost () {
    if (isLost) return
    isLost = true
    retry()
  },
  /** Whether the server is away, after something that was no request of ours failed. */
  async check () {
    if (!await answers()) connection.lost()
    return isLost
  }
}

/** Any answer will do, be it a refusal. */
const answers = () => fetch(`${apiRoot}/time`).then((response) => response.status < 502, () => false)

function retry (): void {
  timer = setTimeout(async () => {
    if (await answers()) connection.answered()
    else if (isLost) retry()
  }, RETRY_MS)
}

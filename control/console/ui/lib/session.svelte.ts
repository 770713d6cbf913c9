// Who is signed in, and what the roles of the operator allow.

import { ApiError, body, hooks, own, type Schemas } from '../api/client'
import { forgetDrafts } from './drafts'
import { t } from './i18n.svelte'
import { store, stored } from './stored'

export type Who = Schemas['WhoDocument']
type Verb = 'create' | 'read' | 'list' | 'update' | 'delete'

/** Where the browser notes that somebody was signed in. */
const REMEMBERED = 'session'
/** `undefined`: not known yet; `null`: nobody. */
let who = $state.raw<Who | null | undefined>(undefined)
/** The session ended while somebody works: the page stays, and a dialog asks for the password. */
let isOver = $state(false)
/** Grows when a session begins: what was refused is loaded again. */
let turn = $state(0)
/** Why the link of a start did not sign in. */
let linkFault = $state.raw<ApiError>()
let linkCode = ''
let failure = $state.raw<ApiError>()

export const session = {
  get who () { return who },
  get isOver () { return isOver },
  get turn () { return turn },
  get linkFault () { return linkFault },
  /** The server did not say who is signed in. */
  get failure () { return failure },
  get account () { return who?.operator.account ?? '' }
}

hooks.expired = () => { if (who) isOver = true }

/** Whether one can sign in by a provider of identities. */
export const hasProvider = document.querySelector('base[data-provider]') !== null

/** Whether the operator may do something. What it may not is not offered. */
export function can (subject: string, ...verbs: Verb[]): boolean {
  const held = new Set<string>()
  for (const permission of who?.permissions ?? []) {
    const [name, list] = permission.split(':')
    if (name === subject) for (const verb of (list ?? '').split(',')) held.add(verb)
  }
  return verbs.every((verb) => held.has(verb))
}

/** Takes the link of a start, if the page was opened by one, and asks who is signed in. */
export async function begin (): Promise<void> {
  const code = location.hash.match(/^#sign-in=([\w-]+)$/)?.[1]
  if (code) {
    // The code works once and stays in no history.
    history.replaceState(history.state, '', location.pathname + location.search)
    linkCode = code
    await useLink()
    if (!linkFault) return
  }
  // A browser without a session is refused nothing. On the way from another site it keeps the cookie back for the page
  // itself, so a session of before is remembered.
  const mayBe = import.meta.env.DEV || document.querySelector('base[data-session]') || stored(REMEMBERED)
  if (mayBe) await refresh()
  else who ??= null
}

/** Signs in by the link of a start; again, if the server did not answer. */
export async function useLink (): Promise<void> {
  linkFault = undefined
  try {
    await body(own.POST('/console/api/session/link', { body: { code: linkCode } }))
    await begun()
  } catch (error) {
    linkFault = error as ApiError
  }
}

// The link is opened where the console is open already, or somebody signed in elsewhere after the session was over.
addEventListener('hashchange', () => { if (location.hash.startsWith('#sign-in=')) void begin() })
document.addEventListener('visibilitychange', () => { if (isOver && !document.hidden) void refresh() })

/** After a sign-in: the browser must have kept the cookie. */
async function begun (): Promise<void> {
  await refresh()
  if (failure) throw failure
  if (!who || isOver) throw new ApiError(-1, 0, [t('cookieNotKept')])
}

/** Asks who is signed in. */
export async function refresh (): Promise<void> {
  try {
    const found = await body(own.GET('/console/api/session'))
    const isOther = who != null && who.operator.id !== found.operator.id
    who = found
    store(REMEMBERED, 'yes')
    isOver = false
    failure = undefined
    turn += 1
    // What another person left on the page is not for this one.
    if (isOther) {
      forgetDrafts()
      location.reload()
    }
  } catch (error) {
    if (error instanceof ApiError && error.status === 401) {
      store(REMEMBERED, undefined)
      failure = undefined
      // What is on the page stays while its session is over.
      if (who) isOver = true
      else who = null
    } else failure = error as ApiError
  }
}

export interface Credentials { email: string, password: string, account?: string, code?: string, recoveryCode?: string }

export async function signIn (credentials: Credentials): Promise<void> {
  await body(own.POST('/console/api/session', { body: credentials }))
  linkFault = undefined
  await begun()
}

export async function signOut (): Promise<void> {
  try {
    await body(own.DELETE('/console/api/session'))
  } catch (error) {
    if (!(error instanceof ApiError && error.status === 401)) throw error
  }
  store(REMEMBERED, undefined)
  // Nothing of the person stays in the memory of the page.
  forgetDrafts()
  location.reload()
}

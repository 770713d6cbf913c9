// Who is signed in, and what the roles of the operator allow.

import { ApiError, body, hooks, own, type Schemas } from '../api/client'
import { drafts } from './drafts'

export type Who = Schemas['WhoDocument']
type Verb = 'create' | 'read' | 'list' | 'update' | 'delete'

/** Where the browser notes that somebody was signed in. */
const REMEMBERED = 'waymark.session'
/** `undefined`: not known yet; `null`: nobody. */
let who = $state.raw<Who | null | undefined>(undefined)
/** The session ended while somebody works: the page stays, and a dialog asks for the password. */
let isOver = $state(false)
/** Grows when a session begins: what was refused is loaded again. */
let turn = $state(0)
/** Why the link of a start did not sign in. */
let linkFault = $state.raw<ApiError>()
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
    history.replaceState(null, '', location.pathname + location.search)
    try {
      await body(own.POST('/console/api/session/link', { body: { code } }))
    } catch (error) {
      linkFault = error as ApiError
    }
  }
  // A browser without a session is refused nothing. On the way from another site it keeps the cookie back for the page
  // itself, so a session of before is remembered.
  const mayBe = import.meta.env.DEV || code || document.querySelector('base[data-session]') || localStorage.getItem(REMEMBERED)
  if (mayBe) await refresh()
  else who = null
}

/** Asks who is signed in. */
export async function refresh (): Promise<void> {
  try {
    const found = await body(own.GET('/console/api/session'))
    const isOther = who != null && who.operator.id !== found.operator.id
    who = found
    localStorage.setItem(REMEMBERED, 'yes')
    isOver = false
    failure = undefined
    turn += 1
    // What another person left on the page is not for this one.
    if (isOther) {
      drafts.clear()
      location.reload()
    }
  } catch (error) {
    if (error instanceof ApiError && error.status === 401) {
      localStorage.removeItem(REMEMBERED)
      who = null
    } else failure = error as ApiError
  }
}

export interface Credentials { email: string, password: string, account?: string, code?: string, recoveryCode?: string }

export async function signIn (credentials: Credentials): Promise<void> {
  await body(own.POST('/console/api/session', { body: credentials }))
  linkFault = undefined
  await refresh()
}

export async function signOut (): Promise<void> {
  try {
    await body(own.DELETE('/console/api/session'))
  } catch (error) {
    if (!(error instanceof ApiError && error.status === 401)) throw error
  }
  localStorage.removeItem(REMEMBERED)
  // Nothing of the person stays in the memory of the page.
  drafts.clear()
  location.reload()
}

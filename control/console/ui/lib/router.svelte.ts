// Paths and queries of the console. The URL holds what is shown, so that a view can be sent.

import { root } from './root'

const read = () => ({
  path: location.pathname.startsWith(root.pathname) ? location.pathname.slice(root.pathname.length) : '',
  query: new URLSearchParams(location.search)
})

let now = $state.raw(read())
/** Grows with each move to another path: the new page gets the focus. */
let moves = $state(0)

export const router = {
  /** The path below the root of the console, without a slash before it. */
  get path () { return now.path },
  get query () { return now.query },
  get moves () { return moves },
  /** The parts of the path, decoded. */
  get parts () {
    return now.path.split('/').filter((part) => part !== '').map((part) => {
      try { return decodeURIComponent(part) } catch { return part }
    })
  }
}

/** The address of a page, relative to the root of the console, as links hold it. */
export function href (parts: string[], query: Record<string, string | undefined> = {}): string {
  const path = parts.map(encodeURIComponent).join('/')
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) if (value) search.set(name, value)
  const text = search.toString()
  return `${path === '' ? './' : path}${text === '' ? '' : `?${text}`}`
}

/** Moves to an address; `state` stays with the entry of the history. */
export function go (to: string, state: object | null = null): void {
  const url = new URL(to, root)
  const isOther = url.pathname !== location.pathname
  if (url.href !== location.href) history.pushState(state, '', url)
  now = read()
  if (isOther) moves += 1
}

/** Changes parameters of the query and keeps the others. */
export function setQuery (changes: Record<string, string | undefined>, state: object | null = null): void {
  const query = new URLSearchParams(now.query)
  for (const [name, value] of Object.entries(changes)) {
    if (value) query.set(name, value)
    else query.delete(name)
  }
  const text = query.toString()
  go(`${root.pathname}${now.path}${text === '' ? '' : `?${text}`}`, state)
}

addEventListener('popstate', () => {
  const before = now.path
  now = read()
  if (now.path !== before) moves += 1
})

// Links of the console move within the page.
addEventListener('click', (event) => {
  if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return
  const link = (event.target as Element | null)?.closest?.('a[href]') as HTMLAnchorElement | null
  if (!link || link.target || link.hasAttribute('download') || link.getAttribute('href')?.startsWith('#')) return
  const url = new URL(link.href)
  if (url.origin !== root.origin || !url.pathname.startsWith(root.pathname)) return
  // What lies below `api/` is no page of ours.
  if (url.pathname.startsWith(`${root.pathname}api/`)) return
  event.preventDefault()
  go(url.href)
})

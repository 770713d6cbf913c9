// Where the console lies. The page begins with a `<base>` that leads to its root, whatever prefix a proxy puts before it.

/** The root of the console, with a slash at its end. */
export const root = import.meta.env.DEV ? new URL('/', location.href) : new URL('./', document.baseURI)

/** Where the operations for the console begin, without a slash at its end: paths such as `/console/api/session` follow. */
export const origin = new URL(import.meta.env.DEV ? '/' : '../', root).href.replace(/\/$/, '')

/** The public API as the console reaches it, without a slash at its end. */
export const apiRoot = `${origin}/console/api`

/** The public API as programs reach it, for examples. */
export const publicApi = origin

// What is under way is asked for again while somebody looks.

import type { Loaded } from './load.svelte'

/** Loads again `everyMs` after each answer for as long as it says that more will come. */
export function follow<T> (loaded: Loaded<T>, everyMs: number, isUnderWay: (data: T) => boolean): void {
  $effect(() => {
    const { data, isLoading } = loaded
    if (isLoading || data === undefined || !isUnderWay(data)) return
    const timer = setInterval(() => { if (!document.hidden) loaded.again() }, everyMs)
    return () => clearInterval(timer)
  })
}

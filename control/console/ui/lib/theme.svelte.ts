// Light, dark, or as the system has it.

import { store, stored } from './stored'

export type Theme = 'system' | 'light' | 'dark'

const chosen = stored('theme')
let theme = $state<Theme>(chosen === 'light' || chosen === 'dark' ? chosen : 'system')
const system = matchMedia('(prefers-color-scheme: dark)')
/** Grows when colours change: what is drawn on a canvas is drawn again. */
let turn = $state(0)
system.addEventListener('change', () => { turn += 1 })

export const look = {
  get theme () { return theme },
  get turn () { return turn }
}

export function applyTheme (): void {
  if (theme === 'system') delete document.documentElement.dataset.theme
  else document.documentElement.dataset.theme = theme
}

export function setTheme (to: Theme): void {
  theme = to
  store('theme', to)
  applyTheme()
  turn += 1
}

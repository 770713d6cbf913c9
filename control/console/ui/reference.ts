// The reference of the API with a client in it, at `/docs/reference/`.

import library from '../node_modules/.reference/standalone.js?url'
import { apiRoot, origin } from './lib/root'

declare global {
  interface Window {
    /** Read by the library's parser of values: it tries to compile code otherwise, which the page's policy refuses. */
    __zod_globalConfig?: { jitless: boolean }
    Scalar?: { createApiReference: (selector: string, options: Record<string, unknown>) => unknown }
  }
}

const key = { url: origin, description: 'With an API key' }
const session = { url: apiRoot, description: 'With your session of the console' }
const isSignedIn = document.querySelector('base[data-session]') !== null

window.__zod_globalConfig = { jitless: true }
const script = document.createElement('script')
script.src = library
script.onload = () => window.Scalar?.createApiReference('#app', {
  url: `${origin}/openapi.json`,
  // Whoever is signed in tries with what the session may do, and need not paste a key.
  servers: isSignedIn ? [session, key] : [key],
  // Nothing from another host: no fonts, no reports of use, no assistant.
  withDefaultFonts: false,
  telemetry: false,
  agent: { disabled: true },
  mcp: { disabled: true },
  hideClientButton: true,
  showDeveloperTools: 'never',
  // A key is forgotten with the page.
  persistAuth: false
})
script.onerror = () => { document.getElementById('app')!.textContent = 'The reference could not be loaded. Load the page again.' }
document.head.append(script)

// What the browser keeps between visits. Where nothing may be stored, nothing is kept.

export function stored (name: string): string | null {
  try { return localStorage.getItem(`waymark.${name}`) } catch { return null }
}

export function store (name: string, value: string | undefined): void {
  try {
    if (value === undefined) localStorage.removeItem(`waymark.${name}`)
    else localStorage.setItem(`waymark.${name}`, value)
  } catch { /* It holds until the page is left. */ }
}

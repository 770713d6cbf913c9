// Packs what Vite wrote by brotli and gzip, refuses a first screen that has grown too large, and puts the rest into place.

import { readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'

const site = 'dist/new'
/** Most bytes of script, packed by gzip, until somebody sees the first screen. */
const MOST_FIRST = 60 * 1024
/** Packing a larger file as well as possible takes too long. */
const LARGE = 1024 * 1024

const files = (folder) => readdirSync(folder).flatMap((name) => {
  const path = join(folder, name)
  return statSync(path).isDirectory() ? files(path) : [path]
})

const packed = new Map()
for (const path of files(site)) {
  if (!/\.(js|css|svg|json|html)$/.test(path)) continue
  const bytes = readFileSync(path)
  const gzip = gzipSync(bytes, { level: 9 })
  packed.set(path.slice(site.length + 1), gzip.length)
  // The pages themselves are completed by the server, and small.
  if (path.endsWith('.html') || bytes.length < 1024) continue
  writeFileSync(`${path}.gz`, gzip)
  writeFileSync(`${path}.br`, brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: bytes.length > LARGE ? 9 : 11 } }))
}

// What the page loads at once, and what these import. The sign-in and the overview are the first screens.
const html = readFileSync(join(site, 'index.html'), 'utf8')
const first = new Set([...html.matchAll(/(?:src|href)="\.\/([^"]+\.js)"/g)].map((match) => match[1]))
for (const name of packed.keys()) if (/^assets\/(Overview|SignIn|Shell)-.*\.js$/.test(name)) first.add(name)
for (const name of first) {
  const text = readFileSync(join(site, name), 'utf8')
  for (const match of text.matchAll(/(?:from|import)\s*["']\.\/([^"']+\.js)["']/g)) first.add(`assets/${match[1]}`)
}
const sum = [...first].reduce((sum, name) => sum + (packed.get(name) ?? 0), 0)
console.log(`first screen: ${(sum / 1024).toFixed(1)} KiB of script (gzip) in ${first.size} files`)
if (sum === 0 || sum > MOST_FIRST) {
  console.error(`the first screen must have between 1 and ${MOST_FIRST} bytes of script (gzip), not ${sum}`)
  process.exit(1)
}
rmSync('dist/site', { recursive: true, force: true })
renameSync(site, 'dist/site')

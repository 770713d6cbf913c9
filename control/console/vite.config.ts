import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { svelte } from '@sveltejs/vite-plugin-svelte'
import { defineConfig, type Plugin } from 'vite'
import { pageTexts } from './pageTexts.ts'
import { SOURCE as MAP, world } from './world.ts'

// Where `npm run dev` finds a running Waymark.
const server = process.env.WAYMARK_URL ?? 'http://127.0.0.1:8080'

/** Whatever is bundled must be one of these: `licences.txt` says so with the text of each. */
const LICENCES = ['MIT', 'ISC', 'BSD-3-Clause', 'Apache-2.0', '0BSD']

/** Writes the licences of the packages whose code is in the bundle. */
const licences = (): Plugin => ({
  name: 'licences',
  apply: 'build',
  generateBundle () {
    const ids = [...this.getModuleIds()].map((id) => id.match(/.*\/node_modules\/((?:@[^/]+\/)?[^/]+)\//))
    const packages = new Map(ids.flatMap((match) => match?.[1] ? [[match[1], match[0]] as const] : []))
    // Its outlines are in the bundle, and none of its files.
    packages.set(MAP, fileURLToPath(new URL(`./node_modules/${MAP}/`, import.meta.url)))
    packages.delete('.reference')
    const texts = [...packages].sort(([a], [b]) => a.localeCompare(b)).map(([name, folder]) => {
      const { version, license } = JSON.parse(readFileSync(`${folder}package.json`, 'utf8')) as { version: string, license: string }
      if (!LICENCES.includes(license)) this.error(`${name} has the licence ${license}`)
      const file = readdirSync(folder).find((one) => /^licen[cs]e/i.test(one))
      return `${name} ${version} (${license})\n\n${file ? readFileSync(`${folder}${file}`, 'utf8').trim() : ''}`
    })
    // It comes without a text of its licence; the notices of what it holds stand in it.
    texts.push('@scalar/api-reference (MIT)\n\nCopyright (c) 2023-present Scalar')
    this.emitFile({ type: 'asset', fileName: 'licences.txt', source: `${texts.join('\n\n---\n\n')}\n` })
  }
})

export default defineConfig({
  // Relative: a proxy may put any prefix before the console.
  base: './',
  plugins: [svelte(), world(), pageTexts(), licences()],
  build: {
    // `pack.mjs` puts it in the place of what was built before, once it is whole.
    outDir: 'dist/new',
    emptyOutDir: true,
    target: 'es2022',
    // Everything comes by files of our own origin: the policy of the page allows `data:` for images alone.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    rolldownOptions: { input: ['index.html', 'reference.html'], checks: { pluginTimings: false } }
  },
  server: {
    host: '127.0.0.1',
    proxy: { '/console/api': { target: server } }
  }
})

import { svelte } from '@sveltejs/vite-plugin-svelte'
import { defineConfig } from 'vite'

// Where `npm run dev` finds a running Waymark.
const server = process.env.WAYMARK_URL ?? 'http://127.0.0.1:8080'

export default defineConfig({
  // Relative: a proxy may put any prefix before the console.
  base: './',
  plugins: [svelte()],
  build: {
    outDir: 'dist/site',
    emptyOutDir: true,
    target: 'es2022',
    // Everything comes by files of our own origin: the policy of the page allows no `data:`.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    rolldownOptions: { checks: { pluginTimings: false } }
  },
  server: {
    host: '127.0.0.1',
    proxy: { '/console/api': { target: server } }
  }
})

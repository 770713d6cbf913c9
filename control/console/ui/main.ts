import { mount } from 'svelte'
import App from './App.svelte'
import './app.css'
import { begin } from './lib/i18n.svelte'
import { applyTheme } from './lib/theme.svelte'

applyTheme()
// Without the messages of another language English stays.
await begin().catch(() => {})
const target = document.getElementById('app')
if (target) mount(App, { target })

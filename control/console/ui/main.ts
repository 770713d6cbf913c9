import { mount } from 'svelte'
import App from './App.svelte'
import './app.css'
import { begin } from './lib/i18n.svelte'
import { applyTheme } from './lib/theme.svelte'

applyTheme()
await begin()
const target = document.getElementById('app')
if (target) mount(App, { target })

// The words of visitors' pages in each language, read from the edge when the console is built: a preview says what an edge says.

import { readFileSync } from 'node:fs'
import type { Plugin } from 'vite'

const MODULE = 'virtual:page-texts'
const SOURCE = new URL('../../edge/visitor_pages/src/texts.rs', import.meta.url)
const REPORTS = new URL('../../edge/visitor_pages/src/report_texts.rs', import.meta.url)
/** Kinds by their names in the API, and what the edge calls them. */
const KINDS = { unknown: 'unknown', ended: 'ended', suspended: 'paused', copy: 'copy', root: 'root' }
const TEXT = String.raw`"((?:[^"\\]|\\.)*)"`

function read (): string {
  const [, ...languages] = readFileSync(SOURCE, 'utf8').split(/\btag: "/)
  const reports = readFileSync(REPORTS, 'utf8')
  const words = languages.map((language) => {
    const tag = language.slice(0, language.indexOf('"'))
    const offer = reports.match(new RegExp(String.raw`\btag: "${tag}",\s*offer: ${TEXT}`))?.[1]
    if (!offer) throw new Error(`${REPORTS.pathname}: no words in ${tag}`)
    const texts = Object.entries(KINDS).map(([kind, name]) => {
      const found = language.match(new RegExp(String.raw`\b${name}: \(\s*${TEXT},\s*${TEXT},?\s*\)`))
      if (!found) throw new Error(`${SOURCE.pathname}: no text of ${name} in ${language.slice(0, 5)}`)
      return [kind, found.slice(1).map((text) => JSON.parse(`"${text}"`) as string)]
    })
    return [tag, { ...Object.fromEntries(texts), offer: [JSON.parse(`"${offer}"`) as string, ''] }]
  })
  // A tag that is no literal would leave its language out.
  const tags = readFileSync(SOURCE, 'utf8').match(/\btag: (?!&)/g)?.length
  if (words.length < 2 || words.length !== tags) throw new Error(`${SOURCE.pathname}: no languages`)
  return `export default JSON.parse(${JSON.stringify(JSON.stringify(Object.fromEntries(words)))})`
}

/** The words as a module. */
export const pageTexts = (): Plugin => ({
  name: 'page-texts',
  resolveId: (id) => id === MODULE ? `\0${MODULE}` : undefined,
  load: (id) => id === `\0${MODULE}` ? read() : undefined
})

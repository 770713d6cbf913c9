import type { en } from './pages'

export const de: Record<keyof typeof en, string> = {
  title: 'Seiten für Besucher', lead: 'Wer einen Code scannt, der nirgendwohin führt, sieht eine kurze Seite. Eine Edge hat eine Änderung innerhalb einer Sekunde.',
  ofAll: 'Für alle Kurz-Domains, die keine eigenen haben.', ofOne: 'Nur für {domain}, anstelle derer für alle.', mayNot: 'Ihre Rolle zeigt keine Seiten für Besucher.',
  look: 'Aussehen', name: 'Name über dem Text', logo: 'Logo', dropLogo: 'PNG oder SVG hierher ziehen oder auswählen', logoHint: 'PNG: 512 × 512 Pixel und 64 KiB; SVG: 32 KiB, nur Formen.', noLogo: 'Das ist weder ein PNG noch ein SVG, oder es ist größer als 64 KiB.', removeLogo: 'Logo entfernen',
  ownColors: 'Eigene Farben', background: 'Hintergrund', text: 'Text', accent: 'Schaltfläche', contrastOf: '{what} auf dem Hintergrund: Kontrast {ratio}', tooLow: 'zu gering: mindestens 4,5 ist nötig',
  linkUrl: 'Schaltfläche führt nach', linkHint: 'https, und ein Host, zu dem Ihre Links führen dürfen.', linkLabel: 'Text der Schaltfläche', copies: 'Stücke, die Kopien sein können', copiesNone: 'führen weiter wie andere', copiesConfirmed: 'bekommen eine Seite, wenn es bestätigt ist', copiesSuspected: 'bekommen eine Seite, wenn es vermutet wird', reports: 'Wer diese Seite sieht, kann Ihnen schreiben', reportsHint: 'Jeder, der den Code scannt, kann das. Was er schreibt, steht beim Fall des Stücks.', photos: 'Er darf ein Foto mitschicken', photosHint: 'Höchstens 5 MiB, die zu Ihrem Speicher zählen. Nur das Bild wird aufbewahrt, ohne Ort und Zeit.',
  texts: 'Texte', language: 'Sprache', addLanguage: 'Weitere Sprache, etwa pt-BR', add: 'Hinzufügen', kind: 'Seite', heading: 'Überschrift', textsHint: 'Leer: die Worte von Waymark in dieser Sprache.', oneEmpty: 'Eine Seite braucht Überschrift und Text.',
  unknown: 'Code ist nicht bekannt', ended: 'Link ist beendet', suspended: 'Link pausiert', copy: 'Vielleicht eine Kopie', root: 'Domain ohne Code',
  preview: 'Vorschau', light: 'Hell: {kind}', dark: 'Dunkel: {kind}', own: 'eigene Texte',
  conflict: 'Jemand anderes hat diese Seiten inzwischen geändert.', changedBy: 'Geändert {when} von {who}.', mine: 'Ihre', theirs: 'Deren', none: 'nichts'
}

import type { DigitalWords } from './digital'

export const de: Record<keyof DigitalWords, string> = {
  title: 'Digital Links', product: 'Produkt', lot: 'Charge {value}', variant: 'Variante {value}', tpx: 'Erweiterung {value}', type: 'Art', name: 'Titel', languages: 'Sprachen', byDefault: 'Standard',
  language: 'Sprache des Telefons', anyLanguage: 'beliebig', serial: 'Seriennummer', scanLeads: 'Ein Scan führt zu', formerGtins: 'Frühere GTINs', serials: 'Seriennummern',
  none: 'führen, wohin das Produkt führt', template: 'führen, wohin das Produkt führt, mit der Seriennummer im Ziel', overrides: 'führen, wohin ihr Gegenstand führt, wenn er Links hat', known: 'führen, wohin ihr Gegenstand führt; andere wurden nie vergeben'
}

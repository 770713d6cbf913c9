import type { DigitalWords } from './digital'

export const de: Record<keyof DigitalWords, string> = {
  title: 'Digital Links', product: 'Produkt', lot: 'Charge {value}', variant: 'Variante {value}', tpx: 'Erweiterung {value}', type: 'Art', name: 'Titel', languages: 'Sprachen', byDefault: 'Standard',
  language: 'Sprache des Telefons', anyLanguage: 'beliebig', serial: 'Seriennummer', scanLeads: 'Ein Scan führt zu', formerGtins: 'Frühere GTINs', serials: 'Seriennummern',
  none: 'führen, wohin das Produkt führt', template: 'führen, wohin das Produkt führt, mit der Seriennummer im Ziel', overrides: 'führen, wohin ihr Gegenstand führt, wenn er Links hat', known: 'führen, wohin ihr Gegenstand führt; andere wurden nie vergeben',
  edit: 'Links ändern', notYet: 'Scans der GTIN führen noch nirgends hin.', noDomain: 'Keine Kurzdomain löst Digital Links auf: das ist eine Einstellung der Domain.', languagesHint: 'Kürzel wie de oder pt-BR, mit Kommas dazwischen.', aliasesHint: 'Mit Kommas dazwischen. Codes mit ihnen führen auch hierher.',
  targetHint: 'Mit {marks} hinter dem Host.', leadsHere: 'Ein Scan führt hierhin', addLink: 'Link hinzufügen', removeLink: '{title} entfernen', addLevel: 'Charge oder Variante hinzufügen', removeLevel: '{level} entfernen', newLevel: 'Neue Ebene', lotField: 'Charge (10)', variantField: 'Variante (22)', tpxField: 'Erweiterung (235)', description: 'Name',
  check: 'Links prüfen', checking: 'Wird geprüft …', pageIsThere: 'da', answers: 'antwortet {status}', leftOut: '{n} Links wurden nicht geprüft.', page: 'Seite', leadsOn: 'führt weiter zu {url}',
  scanOf: 'Scan von', context: 'Kontext', noWish: 'keine Angabe', askedType: 'Art, nach der gefragt wird', showLead: 'Zeigen, wohin er führt', neverIssued: 'Diese Seriennummer wurde nie vergeben.',
  whyDefault: 'Das ist der Standardlink.', whyType: 'Das ist der einzige Link dieser Art.', whyAccept: 'Der Medientyp entscheidet.', whyLanguage: 'Die Sprache entscheidet.', whyContext: 'Der Kontext entscheidet.', whySeveral: 'Mehrere Links passen. Wer scannt, wählt aus.', whyNoLink: 'Es gibt keinen Link dieser Art.',
  link: 'Link {n} von {level}', conflict: 'Jemand anders hat diese Links inzwischen geändert. Was Sie eingegeben haben, steht noch hier; speichern Sie noch einmal, um das andere zu ersetzen.'
}

import type { en } from './domains'

export const de: Record<keyof typeof en, string> = {
  age: 'Weiterleitungen werden behalten', ageOf: 'Sekunden, für die Weiterleitungen von {domain} behalten werden', seconds: 's', notKept: 'nicht behalten', ageSaved: 'Gespeichert',
  ageConflict: 'Jemand anderes hat das inzwischen geändert; jetzt gilt: {now}. Was Sie eingegeben haben, steht noch da; speichern Sie erneut, um es zu ersetzen.',
  ageHint: 'Sekunden von 0 bis 86.400, für die Browser und gemeinsame Caches eine Weiterleitung behalten dürfen; leer: sie dürfen nicht. Wer eine behält, fragt keine Edge: Seine Scans werden nicht gezählt, und eine Änderung, eine Pause oder eine Sperre ist erst so viel später zu sehen.',
  mayNot: 'Ihre Rolle zeigt keine Kurz-Domains.', host: 'Ein eigener Host, etwa go.example.com', claim: 'Host beanspruchen', state: 'Zustand', pages: 'Seiten für Besucher', pagesOfAll: 'Seiten für Besucher aller Domains',
  pending: 'Wartet auf den Nachweis', verified: 'Nachgewiesen', unproven: 'Nachweis fehlt', refused: 'Gehört einem anderen Konto', platform: 'von der Plattform',
  pendingHint: 'Bevor ein Nachweis gefunden ist, gibt es keine Links darauf.', verifiedHint: 'Links können darauf angelegt werden.', unprovenHint: 'Ihre Links gelten weiter, neue gibt es nicht.', refusedHint: 'Ein anderes Konto hat sie nachgewiesen.',
  proof: 'Nachweis', proofHint: 'Eines von beiden genügt und muss bleiben: Danach wird täglich gesehen.', recordName: 'TXT-Eintrag: Name', recordValue: 'TXT-Eintrag: Text', fileUrl: 'Oder eine Datei unter', fileContent: 'Die Datei enthält',
  checkedAt: 'Zuletzt geprüft', nextCheckAt: 'Nächste Prüfung', endsAt: 'Der Anspruch endet ohne Nachweis', opensAt: 'Für andere Konten offen', notFound: 'Kein Nachweis gefunden', verify: 'Jetzt prüfen', verifyHint: 'Ein Host kann alle 10 Sekunden geprüft werden.',
  serves: 'Was sie neben Links ausliefert', robots: 'Roboter (/robots.txt)', robotsNone: 'dürfen nichts ansehen', robotsAll: 'dürfen jeden Link ansehen',
  digitalLinks: 'GS1 Digital Links', digitalLinksOff: 'werden nicht aufgelöst', digitalLinksOn: 'werden aufgelöst', digitalLinksHint: 'Pfade wie /01/09506000134352 führen, wohin die Links der Produkte führen. Was hier geändert wird, geschieht im Hintergrund.',
  assetLinks: 'Android: assetlinks.json', association: 'iOS: apple-app-site-association', jsonHint: 'JSON; leer: die Datei gibt es nicht.', noJson: 'Das ist kein JSON: {why}',
  prefix: 'Präfix der Pfade', prefixHint: 'Links sind auch unter https://{domain}/{prefix}/… zu erreichen; leer: nur mit der Kurz-ID.', inUrls: 'Kurz-URLs und neue Codes haben das Präfix',
  segments: 'Kurz-IDs dürfen mehrere Teile haben', segmentsHint: 'etwa sale/2026/shoes. Sobald es Links auf der Domain gibt, bleibt es so. Aktualisieren Sie zuerst alle Edges.',
  conflict: 'Jemand anderes hat das inzwischen geändert. Was Sie eingegeben haben, steht noch da; speichern Sie erneut, um zu ersetzen, was unten steht.', changedBy: 'Geändert {when} von {who}.', saved: 'Gespeichert', nobody: 'keine',
  certificate: 'Zertifikat', certificateHint: 'Wird von selbst bestellt und erneuert und an jede Edge gesendet.', certificatePending: 'Wird bestellt', certificateValid: 'Gültig', certificateFailed: 'Fehlgeschlagen', certificateOff: 'Ausgeschaltet',
  issuer: 'Ausgestellt von', notAfter: 'Endet', nextTry: 'Nächste Bestellung', certificateWhy: 'Der letzte Versuch schlug fehl', order: 'Jetzt bestellen', orderHint: 'Ein Zertifikat kann alle 10 Minuten verlangt werden.', switchOff: 'Ausschalten', switchOn: 'Einschalten', switchOffReally: 'Das Zertifikat von {domain} von den Edges nehmen',
  release: 'Domain entfernen', releaseReally: '{domain} entfernen', releaseHint: 'Eine Domain, auf der es Links gab, bleibt: Ihre Codes können gedruckt sein.'
}

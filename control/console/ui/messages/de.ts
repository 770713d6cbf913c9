// The messages of the console in German.

import type { Catalogue } from '../lib/i18n.svelte'

export const de: Catalogue = {
  // Everywhere
  overview: 'Überblick', links: 'Links', products: 'Produkte', items: 'Stücke', team: 'Zugang',
  link: 'Link', product: 'Produkt', item: 'Stück',
  loading: 'Wird geladen', unknown: 'Unbekannt', yes: 'Ja', no: 'Nein', all: 'Alle zeigen', cancel: 'Abbrechen', clear: 'Zurücksetzen', filter: 'Filtern',
  copy: 'Kopieren', copyOf: '{what} kopieren', copied: 'Kopiert', notCopied: 'Bitte von Hand kopieren', download: 'Herunterladen', tryAgain: 'Noch einmal versuchen', back: 'Zurück',
  name: 'Name', brand: 'Marke', tags: 'Schlagworte', id: 'Id', identifier: 'Kennung', identifiers: 'Kennungen', properties: 'Eigenschaften',
  customFields: 'Eigene Felder', description: 'Beschreibung', categories: 'Kategorien', created: 'Angelegt', changed: 'Geändert', facts: 'Angaben',
  you: 'Sie', skip: 'Zum Inhalt', navigation: 'Ansichten', menuOf: 'Menü von {who}', language: 'Sprache', theme: 'Farben',
  themeSystem: 'Wie das System', themeLight: 'Hell', themeDark: 'Dunkel', guides: 'Anleitungen', reference: 'API-Referenz', licences: 'Lizenzen', signOut: 'Abmelden',
  search: 'Suche', searchHint: 'Kurz-URL, Id oder Anfang eines Namens', searching: 'Wird gesucht …',
  searchNone: 'Nichts gefunden. Namen findet man an ihrem Anfang.',
  curlKey: 'KEY ist ein API-Schlüssel von Ihnen: Der Start von Waymark druckt den ersten, die Ansicht „Einstellungen“ macht weitere.',
  newest: 'Neueste', nextPage: 'Nächste Seite', rowsShown: '{count} Zeilen auf dieser Seite', noneWithFilter: 'Nichts passt zum Filter.',
  nameBegins: 'Name beginnt mit', noSuchPage: 'Diese Seite gibt es nicht.', screenMissing: 'Die Ansicht ließ sich nicht laden. Vielleicht wurde Waymark erneuert.',
  loadAgain: 'Seite neu laden', serverAway: 'Waymark antwortet nicht. Was Sie geschrieben haben, bleibt hier; die Seite macht von selbst weiter.',
  // Faults
  faultNoAnswer: 'Waymark antwortet nicht.', faultForbidden: 'Ihre Rolle erlaubt das nicht.', faultNotFound: 'Das gibt es hier nicht.',
  faultTooMany: 'Zu viele Anfragen.', faultServer: 'Waymark hat einen Fehler.', faultRefused: 'Das wurde abgelehnt.',
  faultRetryAfter: 'Versuchen Sie es in {seconds} Sekunden wieder.', faultKept: 'Nichts wurde geändert, und was Sie geschrieben haben, ist noch da.',
  faultUnsure: 'Ob es geändert wurde, ist nicht bekannt. Was Sie geschrieben haben, ist noch da; noch einmal Speichern zeigt es.', requestId: 'Id der Anfrage',
  // Sign-in
  signIn: 'Anmelden', signInLead: 'Melden Sie sich an der Konsole an.', signingIn: 'Sie werden angemeldet …', email: 'E-Mail-Adresse', password: 'Passwort', signInProvider: 'Über Ihr Unternehmen anmelden',
  cookieNotKept: 'Der Browser hat das Cookie der Sitzung nicht behalten. Es braucht HTTPS, oder http://127.0.0.1 in einem Browser, dem das sicher genug ist; Safari ist es das nicht.',
  accountId: 'Id des Kontos', accountHint: 'Nur nötig, wenn Ihre Adresse zu mehreren Konten gehört.',
  code: 'Code der Authenticator-App', codeNeeded: 'Geben Sie den Code ein, den Ihre Authenticator-App zeigt.', codeWrong: 'Der Code ist falsch oder verbraucht. Warten Sie auf den nächsten.',
  recoveryCode: 'Ersatzcode', useRecoveryCode: 'Einen Ersatzcode verwenden', useCode: 'Die App verwenden',
  haveCode: 'Ich habe einen Code aus einer Einladung oder für ein neues Passwort', noAccess: 'Wie bekomme ich Zugang?',
  noAccessHint: 'Wer den Server betreibt, lädt Sie ein oder macht einen Code für ein neues Passwort. Diese Befehle drucken den Code:',
  linkOver: 'Der Link zum Anmelden ist verbraucht oder abgelaufen. Wenn Waymark neu startet, druckt es einen anderen.',
  codeLead: 'Wählen Sie ein Passwort mit dem Code, den Sie bekommen haben.', kindOfCode: 'Art des Codes', invitation: 'Einladung', passwordReset: 'Neues Passwort',
  codeGiven: 'Code', firstName: 'Vorname', newPassword: 'Neues Passwort', newPasswordHint: 'Mindestens 12 Zeichen. Am besten ein Satz.',
  setPassword: 'Passwort setzen', passwordSet: 'Das Passwort ist gesetzt: Melden Sie sich damit an.', backToSignIn: 'Zurück zur Anmeldung',
  sessionOver: 'Ihre Sitzung ist zu Ende', sessionOverHint: 'Melden Sie sich wieder an, um weiterzumachen. Was Sie geschrieben haben, ist noch da.', signedInElsewhere: 'Ich habe mich anderswo angemeldet', otherPerson: 'Als jemand anderes anmelden',
  // Second factor
  secondFactor: 'Zweiter Faktor', secondFactorLead: 'Eine Authenticator-App zeigt einen Code, nach dem neben dem Passwort gefragt wird.', setUp: 'Einrichten',
  totpLead: 'Geben Sie dieses Geheimnis in Ihre Authenticator-App ein, dann den Code, den sie zeigt.', secret: 'Geheimnis', openInApp: 'In einer App auf diesem Gerät öffnen',
  turnOn: 'Einschalten', turnOff: 'Ausschalten', on: 'An', recoveryLeft: '{count} Ersatzcodes sind übrig.', recoveryCodes: 'Ersatzcodes',
  secondFactorOn: 'Der zweite Faktor ist an.', recoveryHint: 'Heben Sie diese Ersatzcodes auf: Jeder gilt einmal an Stelle Ihres Telefons. Sie werden nur jetzt gezeigt.',
  recoveryKept: 'Ich habe sie aufgehoben', secondFactorRequired: 'Ihr Konto verlangt einen zweiten Faktor',
  secondFactorRequiredHint: 'Richten Sie einen ein, um weiterzumachen. Wenn Sie noch kein Passwort haben, setzen Sie zuerst eines: „waymark operators reset-password“ druckt einen Code.',
  // Overview
  daysOfUtc: 'Tage sind die von UTC.', utcDays: '{count} Tage (UTC)',
  timeRange: 'Zeitraum', range24h: '24 Stunden', range7d: '7 Tage', range30d: '30 Tage', range90d: '90 Tage', range365d: '52 Wochen',
  before24h: 'zu den 24 Stunden davor', before7d: 'zu den 7 Tagen davor', before30d: 'zu den 30 Tagen davor', before90d: 'zu den 90 Tagen davor', before365d: 'zu den 52 Wochen davor',
  scans: 'Scans', scan: 'Scan', scansOver: 'Scans, {range}', newDevices: 'Neue Geräte', newDevicesHint: 'erster Scan des Tages', robots: 'Roboter', robotsHint: 'nicht unter den Scans',
  nothingBefore: 'nichts zum Vergleichen', thisPeriod: 'dieser Zeitraum', periodBefore: 'Zeitraum davor', beforeCount: 'davor {count}', period: 'Zeit', share: 'Anteil',
  asTable: 'Tabelle', tableOf: 'Tabelle: {what}', asChart: 'Diagramm', chartSays: '{count} insgesamt', chartMissing: 'Das Diagramm konnte nicht geladen werden. Die Tabelle zeigt dieselben Zahlen.', others: '{count} weitere', daysInUtc: 'Ihre Zeitzone weicht nicht um ganze Stunden von UTC ab, darum sind Tage die von UTC.',
  countries: 'Länder', topProducts: 'Meistgescannte Produkte', topLinks: 'Meistgescannte Links', devices: 'Geräte', verdicts: 'Urteile', noProduct: 'Ohne Produkt',
  devicePhone: 'Telefon', deviceTablet: 'Tablet', deviceDesktop: 'Rechner', deviceOther: 'Anderes',
  noScans: 'Noch keine Scans', noScansHint: 'Legen Sie ein Produkt und einen Link dazu an, drucken oder zeigen Sie seinen Code, und scannen Sie ihn mit einem Telefon. Scans kommen hier in Sekunden an.',
  mayNotStatistics: 'Ihre Rolle zeigt keine Statistik. Bitten Sie, wer Ihr Konto verwaltet, um die Rolle „viewer“ oder „analyst“.',
  attention: 'Braucht Aufmerksamkeit', allCalm: 'Nichts braucht Aufmerksamkeit', allCalmHint: 'Keine offenen Fälle, keine ungewöhnlichen Fragen nach unbekannten Codes; Edges, die mithalten: {edges}.',
  openCases: 'Offene Fälle: {count}', openCasesMore: 'Mehr als {count} offene Fälle', counterfeit: 'Kopie', grayMarket: 'Umgeleitet',
  unknownCodes: '{count} Fragen nach Codes, die niemand ausgegeben hat, in 7 Tagen', edgeBehind: 'Edge {name} ist {count} Änderungen zurück', edgeAway: 'Edge {name} antwortet nicht',
  scansMissing: 'Edges haben seit dem Start {count} Scans verloren', scansOverQuota: '{count} Scans wurden seit dem Start nicht gespeichert: Die Quote ihres Tages war verbraucht',
  now: 'Jetzt', liveOn: 'live', liveOff: 'wird verbunden', scansLastMinute: 'Scans in der letzten Minute', liveWaiting: 'Wartet auf den nächsten Scan.',
  // Links
  shortUrl: 'Kurz-URL', leadsTo: 'Führt nach', belongsTo: 'Gehört zu', shortDomain: 'Kurz-Domain', allDomains: 'Alle Domains', idOfTarget: 'Id eines Produkts oder Stücks', findLinks: 'Titel, Tag, Ziel oder Kurz-Id',
  takenDown: 'Gesperrt', noLinks: 'Noch keine Links', noLinksHint: 'Ein Link gehört zu einem Produkt oder Stück und führt, wohin Sie wollen. Sein Code bleibt, wenn Sie das ändern.',
  mayNotLinks: 'Ihre Rolle zeigt keine Links.', development: 'Für die Entwicklung', targetHint: 'In Pfad und Query stehen {marks} für das, was gescannt wird.',
  save: 'Speichern', saving: 'Wird gespeichert …', discard: 'Verwerfen', undo: 'Rückgängig', savedEverywhere: 'Gespeichert; nach {ms} ms auf jeder Edge', savedSomewhere: 'Gespeichert; nicht jede Edge hat es bestätigt', savedExcept: 'Gespeichert; nicht bestätigt von {edges}',
  conflict: 'Jemand anderes hat diesen Link inzwischen geändert.', conflictNow: 'Er führt jetzt nach', conflictMine: 'Meines darüber speichern', conflictTheirs: 'Das andere übernehmen',
  scansEver: 'Scans insgesamt', queryForwarded: 'Query wird weitergegeben', qrCode: 'QR-Code', qrOf: 'QR-Code von {what}', qrSays: 'Enthält {payload}: Version {version}, Stufe {ecl}.',
  history: 'Verlauf', noHistory: 'Es sind keine Änderungen verzeichnet.', historyTooLarge: 'Was geändert wurde, ist zu groß, um es aufzubewahren.', restore: 'Wiederherstellen', restoreOf: 'Stand von {when} wiederherstellen', commandLine: 'Kommandozeile', noLinksOf: 'Von hier führt noch kein Link.',
  // Products and items
  scans30d: 'Scans, 30 Tage', noProducts: 'Noch keine Produkte', noProductsHint: 'Ein Produkt ist das, wovon Stücke Exemplare sind.', mayNotProducts: 'Ihre Rolle zeigt keine Produkte.',
  noItems: 'Noch keine Stücke', noItemsHint: 'Ein Stück hat seinen eigenen Code.', mayNotItems: 'Ihre Rolle zeigt keine Stücke.', itemsOf: 'Stücke von', noItemsOfProduct: 'Es hat noch keine Stücke.',
  noScansYet: 'Noch keine Scans.', commissioned: 'In Betrieb', decommissioned: 'Außer Betrieb', notCommissioned: 'Nicht in Betrieb',
  verdict: 'Urteil', points: 'Punkte',
  verdictPositive: 'Positiv', verdictNegative: 'Negativ', verdictUnverified: 'Nicht geprüft', statusNone: 'Kein Verdacht', statusSuspected: 'Verdacht', statusConfirmed: 'Bestätigt', statusDuplicate: 'Duplikat',
  caseOpen: 'Offen', caseDismissed: 'Verworfen', caseConfirmed: 'Bestätigt',
  assessed: 'Beurteilung', encoded: 'Codierung', wasCommissioned: 'Inbetriebnahme', wasDecommissioned: 'Außerbetriebnahme',
  inspectorScan: 'Scan einer Prüfperson', supplyChainScan: 'Scan in der Lieferkette', checkin: 'Check-in', when: 'Wann', what: 'Was', device: 'Gerät',
  // Access
  people: 'Personen', role: 'Rolle', state: 'Zustand', invited: 'Eingeladen', active: 'Aktiv', key: 'Schlüssel',
  keyActive: 'Aktiv', keyExpired: 'Abgelaufen', keyRevoked: 'Widerrufen', lastUsed: 'Zuletzt benutzt', never: 'Nie',
  sessions: 'Ihre Sitzungen', browser: 'Browser', network: 'Netz', begun: 'Begonnen', thisOne: 'diese', end: 'Beenden', endReally: 'Jetzt beenden',
  // Cases, jobs, webhooks: the rest of their messages comes with their screens
  cases: 'Fälle', printOrders: 'Druckaufträge', jobs: 'Jobs', webhooks: 'Webhooks', privacy: 'Datenschutz',
  // Map of scans
  mapOf: 'Karte: {what}', mapCountry: '{country}, Scans: {count} ({share})', mapFrom: 'ab {count}', mapHint: 'Wählen Sie ein Land, um nur seine Scans zu sehen.', mapHintChosen: 'Wählen Sie das Land noch einmal, um wieder alle zu sehen.',
  mapMissing: 'Nicht auf der Karte: {count}. Ihr Land ist nicht bekannt oder zu klein dafür; sie stehen in der Liste.', mapAway: 'Die Karte ließ sich nicht laden: In der Liste steht, was sie zeigt.',
  onlyCountry: 'Nur {country}', allCountries: 'Alle Länder', regions: 'Regionen', fewer: 'Weniger zeigen', noScansFrom: 'Von hier gab es keine Scans: {country}.', notByCountry: 'Links, Geräte und Urteile werden nicht nach Ländern gezählt.',
  // Fleet
  fleet: 'Flotte', edges: 'Edges', edge: 'Edge', region: 'Region', version: 'Version',
  fleetAway: 'Antwortet nicht', fleetBehind: 'Weit zurück', fleetCatching: 'Holt auf', fleetCurrent: 'Aktuell',
  fleetRecorded: 'Gespeichert', fleetRepeated: 'Wiederholt, übergangen', fleetUnknown: 'Von unbekannten Codes', fleetOverQuota: 'Über der Quote', fleetMissing: 'Von Edges verloren',
  // Audit
  audit: 'Protokoll', auditExport: 'Alles exportieren', auditExportDays: 'Diese Tage exportieren', fromDay: 'Von', toDay: 'Bis',
  operation: 'Operation', resource: 'Art',
  open: 'Öffnen', close: 'Schließen', before: 'Vorher',
  // Settings
  settings: 'Einstellungen',
  usedUp: 'verbraucht', nearlyUsedUp: 'fast verbraucht',
  shortDomains: 'Kurz-Domains', firstDomain: 'für neue Links',
  // Palette
  goTo: 'Gehe zu', goToHint: 'Ansicht, Kurz-URL, Id oder Anfang eines Namens', screen: 'Ansicht'
}

import type { en } from './privacy'

export const de: Record<keyof typeof en, string> = {
  title: 'Personenbezogene Daten', kept: 'Was von Scannenden bleibt', full: 'Alles', truncated: 'Netz, Hauptversionen, auf etwa einen Kilometer', none: 'Nichts von der Person',
  days: 'Den Rest kürzen nach Tagen', never: 'nie', saved: 'Gespeichert', scanDays: 'Ganze Scans entfernen nach Tagen', elsewhere: 'Was von Menschen bleibt, steht unter „Datenschutz“.', mayNot: 'Ihre Rolle sieht nichts davon.', daysOf: '{days} Tage',
  hint: 'Das Erste gilt für alles, was ab jetzt kommt. Nach so vielen Tagen werden Adressen, Browser-Kennungen und genaue Orte aus Scans und anderen Aktionen endgültig entfernt; Land, Stadt, Zähler und Statistik bleiben.',
  scanHint: 'Scans der Edges werden in diesem Alter ganz entfernt; andere Aktionen und die Zähler der Statistik bleiben.',
  erasures: 'Löschungen', erasure: 'Löschung', erasureOf: 'Löschung von {what}', lead: 'Eine Löschung nimmt im Hintergrund aus Aktionen und Scans, was von einer Person gespeichert ist. Ihr Beleg bleibt.',
  whose: 'Wessen Daten', user: 'Nutzer einer Anwendung', thng: 'Alle, die ein Stück gescannt haben', network: 'Ein Netz', age: 'Was alt genug war', id: 'Id', idHint: '24 Zeichen. Für ein Netz und eine Zeit gibt es die API.',
  erase: 'Löschen', eraseUser: 'Endgültig löschen, was vom Nutzer {id} gespeichert ist', eraseThng: 'Endgültig löschen, was von allen gespeichert ist, die {id} gescannt haben', idNeeded: 'Geben Sie eine Id mit 24 Zeichen an.',
  noErasures: 'Noch keine Löschungen', noErasuresHint: 'Wird ein Nutzer einer Anwendung gelöscht, so werden seine Daten von selbst gelöscht.', state: 'Zustand', anyState: 'Jeder Zustand', subject: 'Von', asked: 'Verlangt', begun: 'Begonnen', ended: 'Beendet', askedBy: 'Verlangt von', changedRows: 'Geänderte Zeilen', users: '{count} Nutzer',
  ENQUEUED: 'Wartet', EXECUTING: 'Läuft', COMPLETED: 'Erledigt', rows: 'Was geändert wurde', of: 'Wessen Daten', from: 'Von', to: 'Bis vor', receipt: 'Beleg', print: 'Diese Seite drucken', profilesFailed: '{count} Profile konnten nicht neu gemacht werden; sie werden jede Minute versucht.', mayNotErasures: 'Ihre Rolle zeigt keine Löschungen: „owner“ und „admin“ sehen sie.',
  actions: 'Aktionen', scans: 'Scans der Edges', webhookMessages: 'Nachrichten von Webhooks', reactionTasks: 'Aufgaben von Reaktionen', unknownScans: 'Zähler unbekannter Codes', profiles: 'Profile von Stücken', standings: 'Urteile, die einen Ort vergaßen',
  export: 'Aktionen exportieren', exportLead: 'Alle Aktionen einer Art, älteste zuerst. Eine Parquet-Datei ist für ein Data Warehouse, JSON-Zeilen sind für alles andere. Beide können groß sein und personenbezogene Daten enthalten.',
  type: 'Art', allTypes: 'Alle Arten', fromDay: 'Von', toDay: 'Bis', parquet: 'Parquet', lines: 'JSON-Zeilen', exporting: 'Wird geholt …'
}

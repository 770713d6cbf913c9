import type { en } from './privacy'

export const de: Record<keyof typeof en, string> = {
  title: 'Personenbezogene Daten', kept: 'Was von Scannenden bleibt', full: 'Alles', truncated: 'Netz, Hauptversionen, auf etwa einen Kilometer', none: 'Nichts von der Person',
  days: 'Den Rest kürzen nach Tagen', never: 'nie', saved: 'Gespeichert',
  hint: 'Das Erste gilt für alles, was ab jetzt kommt. Nach so vielen Tagen werden Adressen, Browser-Kennungen und genaue Orte aus Scans und anderen Aktionen endgültig entfernt; Land, Stadt, Zähler und Statistik bleiben.'
}

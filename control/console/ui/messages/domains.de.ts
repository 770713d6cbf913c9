import type { en } from './domains'

export const de: Record<keyof typeof en, string> = {
  age: 'Weiterleitungen werden behalten', ageOf: 'Sekunden, für die Weiterleitungen von {domain} behalten werden', seconds: 's', notKept: 'nicht behalten', ageSaved: 'Gespeichert',
  ageConflict: 'Jemand anderes hat das inzwischen geändert; jetzt gilt: {now}. Was Sie eingegeben haben, steht noch da; speichern Sie erneut, um es zu ersetzen.',
  ageHint: 'Sekunden von 0 bis 86.400, für die Browser und gemeinsame Caches eine Weiterleitung behalten dürfen; leer: sie dürfen nicht. Wer eine behält, fragt keine Edge: Seine Scans werden nicht gezählt, und eine Änderung, eine Pause oder eine Sperre ist erst so viel später zu sehen.'
}

import type { en } from './changes'

export const de: Record<keyof typeof en, string> = {
  title: 'Änderungen vieler Links', lead: 'Jede kann 30 Tage nach ihrem Ende zurückgenommen werden.', mayNot: 'Ihre Rolle zeigt keine Links.', mayNotChange: 'Ihre Rolle ändert keine Links.',
  newChange: 'Viele Links ändern', changeThese: 'Diese Links ändern', changeAll: 'Alle Links ändern', change: 'Änderung', undoOf: 'Rücknahme', none: 'Noch keine Änderungen', noneHint: 'Filtern Sie die Liste der Links und ändern Sie dann, was sie findet.',
  which: 'Welche Links', allHint: 'Ein Link muss alles erfüllen, was angegeben ist. Alles leer: jeder Link.', q: 'Worte aus Titel, Tag, Ziel oder Kurz-Id', filter: 'Filter', filterHint: 'Etwa tags=summer&createdAt>1767225600000.', of: 'Id eines Produkts oder Stücks', domain: 'Kurz-Domain',
  what: 'Was geändert wird', whatHint: 'Was leer ist, bleibt, wie es ist.', target: 'Neues Ziel', linkTitle: 'Neuer Titel', add: 'Neue Tags', remove: 'Tags, die wegfallen', tagsHint: 'Durch Kommas getrennt.',
  status: 'Zustand', stays: 'bleibt', active: 'aktiv', paused: 'pausiert', code: 'Statuscode', from: 'Führt dorthin ab', until: 'Führt dorthin bis', noFrom: 'Beginn entfernen', noUntil: 'Ende entfernen', ended: 'Ziel davor, danach und während einer Pause', noEnded: 'Dieses Ziel entfernen', query: 'Query wird weitergegeben', yes: 'ja', no: 'nein', localTime: 'In der Zeitzone dieses Browsers.',
  count: 'Zählen und zeigen', found: 'Links: {count}', sample: 'Die ersten {count}, vorher und nachher', noChange: 'nichts unterscheidet sich', confined: 'Nur Links Ihrer Projekte.',
  run: '{count} Links ändern', really: '{count} Links jetzt ändern', state: 'Zustand', started: 'Verlangt', links: 'Links', progress: 'Fortschritt', counts: '{done} von {of}', anyState: 'Jeder Zustand',
  awaitingApproval: 'Wartet auf Freigabe', waiting: 'Wartet', running: 'Läuft', complete: 'Fertig', failed: 'Fehlgeschlagen', cancelled: 'Abgebrochen',
  changed: 'Geändert', unchanged: 'Ohne Unterschied', conflicts: 'Nicht geändert', by: 'Verlangt von', approvedBy: 'Freigegeben von', undoUntil: 'Rücknahme möglich bis', noConflicts: 'Alle wurden geändert.', why: 'Warum', asked: 'Was verlangt wurde', undoes: 'Nimmt zurück', theChange: 'eine Änderung',
  approve: 'Freigeben', approveReally: '{count} Links ändern', approveOther: 'Jemand anderes muss sie freigeben.', cancel: 'Anhalten', cancelReally: 'Anhalten; was geändert ist, bleibt', undo: 'Zurücknehmen', undoReally: '{count} Links zurückgeben, was sie hatten', strict: 'Nur wenn seither kein Link geändert wurde',
  rules: 'Scans nach Regel', countRules: 'Zählen, 7 Tage', rulesHint: 'Nach der Regel, die entschieden hat, wohin ein Scan führt.', rule: 'Regel', scans: 'Scans', robots: 'Roboter', ofApplication: 'der Anwendung {id}', numbered: 'Regel {at}', withoutRule: 'Keine Regel: das eigene Ziel, oder geschlossen'
}

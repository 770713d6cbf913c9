import type { en } from './times'

export const de: Record<keyof typeof en, string> = {
  times: 'Wann und wie er dorthin führt', validFrom: 'Ab', validUntil: 'Bis', pausedNow: 'Pausiert: führt vorerst nicht zu seinem Ziel', endedUrl: 'Wohin er davor, danach und in der Pause führt',
  endedHint: 'Ohne Adresse bekommt, wer ihn scannt, eine kurze Seite.', always: 'Immer', untilEver: 'ohne Ende', localTime: 'In der Zeitzone dieses Browsers.',
  statusCode: 'Statuscode der Weiterleitung', code307: '307: vorläufig', code302: '302: vorläufig, für alte Programme', code301: '301: dauerhaft', code308: '308: dauerhaft, behält die Methode',
  statusCodeHint: 'Ein dauerhafter Code passt nur, wenn das Ziel bleibt: Browser und Suchmaschinen dürfen es sich merken und nicht mehr fragen. Eine spätere Änderung, Pause oder ein Ende erreicht sie nicht, und ihre Scans werden nicht gezählt.',
  maxScans: 'Endet nach so vielen Scans', maxScansHint: 'Es zählen Scans von Menschen, sobald der Link diese Grenze hat.', countedScans: 'Bisher gezählt: {n}.',
  active: 'Aktiv', scheduled: 'Geplant', ended: 'Beendet', paused: 'Pausiert',
  look: 'Aussehen auf Bildschirmen', color: 'Farbe', background: 'Hintergrund', shape: 'Form der Module', square: 'Quadrate', rounded: 'Gerundet', dots: 'Punkte',
  unread: 'Ein Code, der so aussieht, ließe sich nicht lesen: Wählen Sie eine dunklere Farbe auf hellerem Grund oder eine andere Form.'
}

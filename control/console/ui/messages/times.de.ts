import type { en } from './times'

export const de: Record<keyof typeof en, string> = {
  times: 'Wann er dorthin führt', validFrom: 'Ab', validUntil: 'Bis', pausedNow: 'Pausiert: führt vorerst nicht zu seinem Ziel', endedUrl: 'Wohin er davor, danach und in der Pause führt',
  endedHint: 'Ohne Adresse bekommt, wer ihn scannt, eine kurze Seite.', always: 'Immer', untilEver: 'ohne Ende', localTime: 'In der Zeitzone dieses Browsers.',
  active: 'Aktiv', scheduled: 'Geplant', ended: 'Beendet', paused: 'Pausiert'
}

import type { en } from './more'

export const de: Record<keyof typeof en, string> = {
  // Item
  commissionedAt: 'Zustand seit', authenticity: 'Echtheit', noVerdict: 'Noch wurde kein Scan dieses Stücks beurteilt.', reasons: 'Gründe, nach dem Scan vom {at}', caseOf: 'Fall: {kind}',
  evidence: 'Punkte {points} · Zeichen {signs} · Länder {countries}', decidedBecause: 'Entschieden, weil:', happened: 'Was damit geschah', where: 'Wo',
  // Fleet
  allRegions: 'Alle Regionen', lastHeard: 'Zuletzt gehört', follows: 'Folgt', thisProcess: 'diesem Prozess', justNow: 'gerade eben', fleetAt: 'Stand {time}', mayNotFleet: 'Ihre Rolle zeigt den Zustand des Dienstes nicht.',
  noEdges: 'Noch keine Edge hat sich verbunden', noEdgesHint: 'Eine Edge erscheint hier eine Sekunde, nachdem sie sich verbunden hat. Die Anleitung „A fleet“ sagt, wie man eine startet.',
  fleetSummary: 'Edges, die antworten: {up} von {all}. Neueste Änderung: {revision}.', fleetVersions: '{count} Versionen', fleetOnly: 'Nur was zu beachten ist', fleetAllGood: 'Bei keiner Edge ist etwas zu beachten.',
  fleetRejected: '{count} abgelehnt', fleetLag: 'Änderungen zurück', fleetApplied: 'Hat Änderung {revision}', fleetScans: 'Scans seit dem Start',
  fleetElsewhere: 'Puffer und das Ende von Zertifikaten gehören nicht zu dieser Antwort: Sie sind Metriken, für die es Alarme gibt.',
  // Audit
  mayNotAudit: 'Ihre Rolle zeigt das Protokoll nicht: Inhaber, Admins und Auditoren sehen es.', who: 'Wer', everybody: 'Alle', operationBegins: 'Operation beginnt mit', idOfResource: 'Id', onlyRequest: 'Nur die Anfrage',
  onlyKey: 'Nur der Schlüssel', noAuditHint: 'Hier erscheint jede Änderung des Kontos, und was vorher war.', beforeAfter: 'Vorher und nachher', member: 'Feld', noDifferences: 'Der Eintrag hält keine Werte fest.',
  numberInTrail: 'Nummer', allOfKey: 'Alles von diesem Schlüssel', allOfRequest: 'Alles dieser Anfrage', platformOperator: 'Betreiber der Plattform',
  auditKept: 'Einträge bleiben 400 Tage. Der Export hat alle Einträge der Tage, die ältesten zuerst, was auch sonst gefiltert ist.',
  // Keys
  keys: 'Schlüssel', keyLabel: 'Wofür der Schlüssel ist', makeKey: 'Schlüssel machen', keysHint: 'Ein Schlüssel handelt wie Sie. Er wird einmal gezeigt.',
  keysHintSession: 'Ein Schlüssel handelt wie Sie, wird einmal gezeigt und endet mit dieser Sitzung am {at}.', keyMade: 'Der Schlüssel „{label}“ ist gemacht.', keyOnce: 'Er wird nur jetzt gezeigt: Kopieren Sie ihn.',
  keyKept: 'Ich habe ihn aufgehoben', noKeys: 'Es gibt keine Schlüssel.', keyOwner: 'Von', neverUsed: 'Nie', expires: 'Läuft ab', inDays1: 'In 1 Tag', inDays30: 'In 30 Tagen', inDays90: 'In 90 Tagen', inDays365: 'In 1 Jahr',
  revoke: 'Widerrufen', revokeReally: '„{label}“ jetzt widerrufen', keyNetworks: 'Nur aus Netzen', everywhere: 'überall', project: 'Projekt', wholeAccount: 'Das ganze Konto', bounds: 'Schranken', noBounds: 'keine',
  keyRights: 'Netze und ein Projekt schränken ihn weiter ein.',
  // Settings
  account: 'Konto', quotas: 'Quoten und Verbrauch', quotaOf: 'Quote', used: 'Verbraucht', limit: 'Grenze', noLimit: 'keine', ownLimit: 'für dieses Konto gesetzt', notCounted: 'nicht gezählt', moreThan: 'mehr als {count}',
  resetsAt: 'beginnt neu um {time}', quotaThings: 'Stücke', quotaLinks: 'Links', quotaScans: 'Heute gespeicherte Scans', quotaEvents: 'Ereignisse heute', quotaBytes: 'Dateien', quotaUsers: 'Nutzer von Anwendungen',
  quotaDomains: 'Eigene Kurzdomains', quotaStreams: 'Offene Verbindungen', quotaUploads: 'Gleichzeitige Uploads', notStoredToday: 'heute nicht gespeichert: {count}',
  quotasHint: 'Grenzen setzt der Betreiber der Plattform. Ein Scan über der Grenze wird trotzdem weitergeleitet, aber nicht gespeichert.', noDomains: 'Es gibt keine Kurz-Domains',
  domainsHint: 'Der Betreiber der Plattform fügt eine Domain hinzu: „control accounts domains add“, oder WAYMARK_SHORT_DOMAINS von „waymark up“.', targetHosts: 'Links dürfen führen nach', anyHost: 'jedem Host',
  privateTargets: 'Private Adressen als Ziele', secondFactorNeeded: 'Zweiter Faktor verlangt', providerSignIn: 'Anmeldung über das Unternehmen', accountHow: 'Die API ändert das: „PUT /accounts/ID“.'
}

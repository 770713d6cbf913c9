import type { en } from './tryit'

export const de: Record<keyof typeof en, string> = {
  tryIt: 'Ausprobieren', lead: 'Wohin ein Scan führen würde, und warum. Gezählt wird nichts. Was leer bleibt, ist von dem Scan nicht bekannt.',
  country: 'Land', countryHint: 'Zwei Buchstaben, etwa DE', language: 'Sprache', languageHint: 'Etwa de oder en-GB', device: 'Gerät', anyDevice: 'Nicht bekannt',
  iphone: 'iPhone', android: 'Android-Telefon', ipad: 'iPad', windows: 'Windows-Rechner', mac: 'Mac', robot: 'Roboter', phone: 'Telefon', tablet: 'Tablet', desktop: 'Rechner',
  more: 'Mehr über den Scan', region: 'Region', regionHint: 'Auf Englisch, etwa Bavaria', query: 'Abfrage des Links', queryHint: 'Etwa ref=poster', referer: 'Seite, von der er kommt', refererHint: 'Etwa https://example.com/', address: 'Adresse', addressHint: 'Etwa 192.0.2.7',
  percentage: 'Platz des Besuchers (%)', percentageHint: '0 bis 99,99', place: 'Platz {percentage} von 100', time: 'Zeit', show: 'Zeigen', asking: 'Wird gefragt …',
  leadsTo: 'Er führt ({status}) zu', noWhere: 'Er führt nirgendwohin: wer ihn scannt, bekommt eine Seite ({status}).',
  byRule: 'Die Regel {rule} entscheidet, wegen {conditions}.', byHiddenRule: 'Die Regel {rule} entscheidet.', byTarget: 'Das ist sein eigenes Ziel: keine Regel trifft zu.', byEnded: 'Er ist geschlossen ({why}) und führt auf seine Seite dafür.', byClosed: 'Er ist geschlossen ({why}).', byCopy: 'Der Artikel könnte eine Kopie sein: dafür wird eine Seite gezeigt.', byTakeDown: 'Er wurde gesperrt: {reason}',
  ofAccount: 'Nr. {place} des Kontos', ofApplication: 'Nr. {place} der Anwendung {id}', before: 'Regeln, die davor versucht wurden', missed: 'nicht erfüllt: {conditions}',
  readAs: 'Gelesen als', hourUtc: 'Stunde {hour} des Tages in UTC'
}

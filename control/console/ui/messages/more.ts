// Words of items, the fleet, the audit trail, keys and settings. They come with these screens.
import { block, type PlainOf } from '../lib/i18n.svelte'

export const en = {
  // Item
  commissionedAt: 'State since', authenticity: 'Authenticity', noVerdict: 'No scan of this item was assessed yet.', reasons: 'Reasons, by the scan of {at}', caseOf: 'Case: {kind}',
  evidence: 'Points {points} · signs {signs} · countries {countries}', decidedBecause: 'Decided because:', happened: 'What happened to it', where: 'Where',
  // Fleet
  allRegions: 'All regions', lastHeard: 'Last heard', follows: 'Follows', thisProcess: 'this process', justNow: 'just now', fleetAt: 'As of {time}', mayNotFleet: 'Your role does not show the state of the service.',
  noEdges: 'No edge has connected yet', noEdgesHint: 'An edge appears here a second after it has connected. The guide “A fleet” says how one is started.',
  fleetSummary: 'Edges that answer: {up} of {all}. Newest change: {revision}.', fleetVersions: '{count} versions', fleetOnly: 'Only what needs attention', fleetAllGood: 'No edge needs attention.',
  fleetRejected: 'refused {count}', fleetLag: 'Changes behind', fleetApplied: 'Has change {revision}', fleetScans: 'Scans since the start',
  fleetElsewhere: 'Spools and the ends of certificates are not part of this answer: they are metrics, for which there are alerts.',
  // Audit
  mayNotAudit: 'Your role does not show the audit trail: owners, admins and auditors see it.', who: 'Who', everybody: 'Everybody', operationBegins: 'Operation begins with', idOfResource: 'Id', onlyRequest: 'Only the request',
  onlyKey: 'Only the key', noAuditHint: 'Every change of the account appears here, with what was before.', beforeAfter: 'Before and after', member: 'Member', noDifferences: 'The entry keeps no values.', numberInTrail: 'Number',
  allOfKey: 'All of this key', allOfRequest: 'All of this request', platformOperator: 'Platform operator',
  auditKept: 'Entries are kept for 400 days. The export has all entries of the days, oldest first, whatever else is filtered.',
  // Keys
  keys: 'Keys', keyLabel: 'What the key is for', makeKey: 'Make a key', keysHint: 'A key acts as you do. It is shown once.', keysHintSession: 'A key acts as you do, is shown once, and ends with this session at {at}.',
  keyMade: 'The key “{label}” is made.', keyOnce: 'It is shown this once: copy it now.', keyKept: 'I have kept it', noKeys: 'There are no keys.', keyOwner: 'Owner', neverUsed: 'Never', expires: 'Expires', inDays1: 'In 1 day',
  inDays30: 'In 30 days', inDays90: 'In 90 days', inDays365: 'In 1 year', revoke: 'Revoke', revokeReally: 'Revoke “{label}” now', keyNetworks: 'Only from networks', everywhere: 'everywhere', project: 'Project',
  wholeAccount: 'The whole account', bounds: 'Bounds', noBounds: 'none', keyRights: 'Networks and a project bound it further.',
  // Settings
  account: 'Account', quotas: 'Quotas and use', quotaOf: 'Quota', used: 'Used', limit: 'Limit', noLimit: 'none', ownLimit: 'set for this account', notCounted: 'not counted', moreThan: 'more than {count}',
  resetsAt: 'begins again at {time}', quotaThings: 'Items', quotaLinks: 'Links', quotaScans: 'Scans stored today', quotaEvents: 'Events today', quotaBytes: 'Files', quotaUsers: 'Users of applications',
  quotaDomains: 'Own short domains', quotaStreams: 'Open streams', quotaUploads: 'Uploads at one time', notStoredToday: 'not stored today: {count}',
  quotasHint: 'Limits are set by the platform operator. A scan above the limit is redirected all the same, and is not stored.', noDomains: 'There are no short domains',
  domainsHint: 'The platform operator adds a domain: “control accounts domains add”, or WAYMARK_SHORT_DOMAINS of “waymark up”.', targetHosts: 'Links may lead to', anyHost: 'any host',
  privateTargets: 'Private addresses as targets', secondFactorNeeded: 'Second factor required', providerSignIn: 'Sign-in by the company', accountHow: 'The API changes these: “PUT /accounts/ID”.'
} as const

export const more = await block(en, { de: async () => (await import('./more.de')).de })
/** Keys of messages without a value in them, for tables. */
export type MoreKey = PlainOf<typeof en>
